"""A llama-server to test with: the server object of xllamacpp, in a process of its own. Runs until its input ends.

Arguments: a GGUF file, how many requests run at once, the port (0: any), and a projector, if images are shown to the
model. Prints the address.
"""

import os
import sys

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # before the import: idle threads must not spin on a shared machine

import xllamacpp


def main() -> None:
    path, slots, port, *projector = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = path
    if projector:
        params.mmproj.path = projector[0]
        params.warmup = False
    params.n_parallel = int(slots)
    params.n_ctx = 2048 * int(slots)
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1  # two that wait for each other are slower on a busy machine
    params.ui = False
    params.verbosity = -1
    params.port = int(port)
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # what runs need not end first


if __name__ == "__main__":
    main()
