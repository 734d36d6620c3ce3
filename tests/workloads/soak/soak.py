"""As soak.c: threads, hashes, exceptions and garbage, and results compared."""

import hashlib
import sys
import threading

stop = threading.Event()
lock = threading.Lock()
rounds = 0
wrong = 0


def whole():
    value = b"start"
    for i in range(100):
        value = hashlib.sha256(value + bytes(i)).digest()
        try:
            if i % 7 == 0:
                raise ValueError(value)
        except ValueError as error:
            value = error.args[0]
    return value


def work(expected):
    global rounds, wrong
    while not stop.is_set():
        result = whole()
        with lock:
            rounds += 1
            wrong += result != expected


expected = whole()
threads = [threading.Thread(target=work, args=(expected,)) for _ in range(3)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
print(f"{rounds} rounds, {wrong} wrong")
sys.exit(1 if wrong or not rounds else 0)
