"""A child that announces a reply too large for any memory and starts to send it."""

import struct
import sys

if __name__ == "__main__":
    sys.stdout.buffer.write(struct.pack("!I", 2**32 - 1))
    while True:
        sys.stdout.buffer.write(bytes(1 << 16))
