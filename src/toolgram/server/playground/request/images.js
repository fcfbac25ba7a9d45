// Files as parts of a message.

const READ = new Set(["image/png", "image/jpeg", "image/gif", "image/bmp"]); // by the server

// The parts of files, in their order; what the browser can show and the server does not read is made a PNG. Throws what
// a person is to be told.
export async function partsOfFiles(files) {
  const urls = await Promise.all([...files].map(async (file) => urlOf(READ.has(file.type) ? file : await png(file))));
  return urls.map((url) => ({ type: "image_url", image_url: { url } }));
}

async function png(file) {
  let image;
  try {
    image = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name} is no image that this browser can show`);
  }
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.convertToBlob();
}

function urlOf(blob) {
  const reader = new FileReader();
  reader.readAsDataURL(blob);
  return new Promise((resolve, reject) => {
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
  });
}
