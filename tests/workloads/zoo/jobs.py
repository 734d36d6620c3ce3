# A client that packs one block after the other with a worker's help: it looks every few milliseconds whether the worker is done
# (look), or waits for it (wait). Arguments: which, blocks.
import sys
import threading
import time
import zlib

DATA = bytes(number * number % 251 for number in range(200_000))


class Job:
    def __init__(self):
        self.asked, self.done, self.packed, self.block = threading.Event(), threading.Event(), b"", b""

    def work(self):
        while self.asked.wait():
            self.asked.clear()
            self.packed = zlib.compress(self.block, 6)
            self.done.set()

    def ask(self, block):
        self.block = block
        self.done.clear()
        self.asked.set()


def look(job):
    while not job.done.is_set():
        time.sleep(0.010)


def main():
    which, blocks = sys.argv[1], int(sys.argv[2])
    job = Job()
    threading.Thread(target=job.work, daemon=True).start()
    total = 0
    for number in range(blocks):
        job.ask(DATA[number % 1000:])
        if which == "look":
            look(job)
        else:
            job.done.wait()
        total += len(job.packed) + zlib.crc32(job.packed) % 2
    print(total)


main()
