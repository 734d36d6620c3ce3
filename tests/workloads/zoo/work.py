# Threads of Python code, one at a time (threads); that compress, which lets others in (zlib); processes (processes).
# Arguments: which, rounds.
import multiprocessing
import sys
import threading
import zlib


def crunch(rounds):
    state = 1
    for _ in range(rounds):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return state


def squeeze(rounds):
    data = bytes(range(256)) * 4000
    state = 0
    for _ in range(rounds):
        state ^= zlib.crc32(zlib.compress(data, 6))
    return state


def in_threads(work, rounds, many):
    results = [0] * many

    def worker(me):
        results[me] = work(rounds)

    threads = [threading.Thread(target=worker, args=(me,)) for me in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


if __name__ == "__main__":
    which, rounds = sys.argv[1], int(sys.argv[2])
    if which == "threads":
        print(in_threads(crunch, rounds, 4))
    elif which == "zlib":
        print(in_threads(squeeze, rounds, 2))
    else:
        with multiprocessing.Pool(2) as pool:
            print(pool.map(crunch, [rounds] * 8, chunksize=1))
