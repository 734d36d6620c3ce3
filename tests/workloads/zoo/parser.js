// The main thread parses all logs while a worker packs what it has parsed (one), or workers parse and pack, half of the logs each (two).
// Arguments: which, logs.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const zlib = require('zlib');

function makeLog(number) {
    let text = '';
    for (let i = 0; i < 900; i++) text += `${number * 31 + i} GET /page/${(i * 7919) % 977} ${200 + (i % 3)}\n`;
    return text;
}

function parseLog(text) {
    const pages = new Map();
    for (let pass = 0; pass < 12; pass++) {
        for (const line of text.split('\n')) {
            const [, , page, code] = line.split(' ');
            if (code === '200') pages.set(page, (pages.get(page) || 0) + pass);
        }
    }
    return [...pages].map(([page, hits]) => `${page} ${hits}`).join('\n');
}

function pack(text) {
    return zlib.deflateSync(text, { level: 1 }).length;
}

const start = (from, to) => new Promise((resolve) => {
    let sum = 0;
    const worker = new Worker(__filename, { workerData: { from, to } });
    worker.on('message', (length) => { sum += length; });
    worker.on('exit', () => resolve(sum));
    start.last = worker;
});

async function main(which, logs) {
    if (which === 'two') {
        const sums = await Promise.all([start(0, logs / 2), start(logs / 2, logs)]);
        return sums[0] + sums[1];
    }
    const sum = start(0, 0);
    for (let i = 0; i < logs; i++) start.last.postMessage(parseLog(makeLog(i)));
    start.last.postMessage(null);
    return sum;
}

if (isMainThread) {
    main(process.argv[2], 2 * Math.floor(Number(process.argv[3]) / 2)).then((sum) => console.log(sum));
} else if (workerData.to > 0) {
    let sum = 0;
    for (let i = workerData.from; i < workerData.to; i++) sum += pack(parseLog(makeLog(i)));
    parentPort.postMessage(sum);
} else {
    parentPort.on('message', (text) => (text === null ? parentPort.close() : parentPort.postMessage(pack(text))));
}
