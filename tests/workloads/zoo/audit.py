# Threads that hash documents and note each in a log, which is synced under its lock (inside) or by its writer for all notes that are
# there (writer). Arguments: which, documents of each thread, folder.
import hashlib
import os
import queue
import sys
import threading

DOCUMENT = bytes(range(256)) * 1200
lock = threading.Lock()
notes = queue.SimpleQueue()


def note_inside(log, text):
    with lock:
        os.write(log, text)
        os.fsync(log)


def write_notes(log):
    while True:
        batch = [notes.get()]
        while not notes.empty():
            batch.append(notes.get())
        os.write(log, b"".join(text for text, _ in batch))
        os.fsync(log)
        for _, is_written in batch:
            is_written.release()


def note_by_writer(log, text):
    is_written = threading.Semaphore(0)
    notes.put((text, is_written))
    is_written.acquire()


def auditor(note, log, documents):
    for number in range(documents):
        note(log, hashlib.sha256(DOCUMENT + b"%d" % number).hexdigest().encode())


def main():
    which, documents, path = sys.argv[1], int(sys.argv[2]), sys.argv[3] + "/audit"
    log = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    note = note_inside if which == "inside" else note_by_writer
    threading.Thread(target=write_notes, args=(log,), daemon=True).start()
    threads = [threading.Thread(target=auditor, args=(note, log, documents)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.unlink(path)
    print("audited")


main()
