// The content of a message, which is a text or a list of parts.

// Its text; parts that are neither text nor shown as images are named.
export function textOf(content) {
  if (!Array.isArray(content)) return content ?? "";
  const parts = content.filter((part) => !isImage(part));
  return parts.map((part) => part.text ?? `[${part.type}]`).join("\n");
}

// Its images that stand in it themselves: none is fetched from an address.
export function imagesOf(content) {
  return Array.isArray(content) ? content.filter(isImage) : [];
}

// A text with images behind it.
export function illustrated(text, images) {
  return images.length ? [...(text ? [{ type: "text", text }] : []), ...images] : text;
}

export function picture(part, name) {
  const made = document.createElement("img");
  Object.assign(made, { src: urlOf(part), alt: name });
  return made;
}

export const isImage = (part) => part?.type === "image_url" && String(urlOf(part)).startsWith("data:image/");
const urlOf = ({ image_url: given }) => given?.url ?? given;
