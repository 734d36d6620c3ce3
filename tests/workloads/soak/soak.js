// As soak.c: two worker threads, hashes, exceptions and garbage, and results compared.
const { Worker, isMainThread, parentPort } = require('node:worker_threads');
const { createHash } = require('node:crypto');

function whole() {
  let sum = 'start';
  for (let i = 0; i < 200; i++) {
    sum = createHash('sha256').update(sum + 'x'.repeat(i)).digest('hex');
    try {
      if (i % 7 === 0) throw new Error(sum);
    } catch (error) {
      sum = error.message;
    }
  }
  return sum;
}

if (isMainThread) {
  const expected = whole();
  let rounds = 0;
  let wrong = 0;
  let stop = false;
  const workers = [0, 1].map(() => new Worker(__filename));
  for (const worker of workers) {
    worker.on('message', (result) => {
      rounds++;
      if (result !== expected) wrong++;
      if (!stop) worker.postMessage('again');
    });
    worker.postMessage('again');
  }
  console.log('ready');
  process.stdin.resume();
  process.stdin.on('end', async () => {
    stop = true;
    await Promise.all(workers.map((worker) => worker.terminate()));
    console.log(`${rounds} rounds, ${wrong} wrong`);
    process.exit(wrong > 0 || rounds === 0 ? 1 : 0);
  });
} else {
  parentPort.on('message', () => parentPort.postMessage(whole()));
}
