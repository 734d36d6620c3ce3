// Workers behind a hot lock of Atomics (lock), or none (apart), or libuv's pool at work (pool). Arguments: which, rounds.
const { Worker, isMainThread, workerData } = require('worker_threads');
const crypto = require('crypto');

function turn(state, turns) {
    state |= 0;
    for (let i = 0; i < turns; i++) {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
    }
    return state;
}

function underLock(state) { return turn(state, 300000); }
function outside(state) { return turn(state, 100000); }

// The futex mutex of U. Drepper's paper, its second one.
function lock(words) {
    let seen = Atomics.compareExchange(words, 0, 0, 1);
    while (seen !== 0) {
        if (seen === 2 || Atomics.compareExchange(words, 0, 1, 2) !== 0) Atomics.wait(words, 0, 2);
        seen = Atomics.compareExchange(words, 0, 0, 2);
    }
}

function unlock(words) {
    if (Atomics.sub(words, 0, 1) !== 1) {
        Atomics.store(words, 0, 0);
        Atomics.notify(words, 0, 1);
    }
}

if (isMainThread) {
    const [, , which, rounds] = process.argv;
    if (which === 'pool') {
        let left = Number(rounds);
        let sum = 0;
        for (let i = 0; i < Number(rounds); i++) {
            crypto.pbkdf2('secret', 'salt' + i, 100000, 64, 'sha512', (error, key) => {
                sum ^= key.readInt32LE(0);
                if (--left === 0) console.log(sum);
            });
        }
    } else {
        const shared = new SharedArrayBuffer(16);
        let left = 4;
        for (let me = 0; me < 4; me++) {
            const worker = new Worker(__filename, { workerData: { shared, me, which, rounds: Number(rounds) } });
            worker.on('exit', () => { if (--left === 0) console.log(new Int32Array(shared)[1]); });
        }
    }
} else {
    const words = new Int32Array(workerData.shared);
    let state = workerData.me + 1;
    for (let i = 0; i < workerData.rounds; i++) {
        if (workerData.which === 'lock') {
            lock(words);
            words[1] = underLock(words[1] + 1);
            unlock(words);
        }
        state = outside(state);
    }
}
