// Parses records and keeps the newest: each batch as new objects (objects), or as numbers in arrays made once (arrays).
// Arguments: which, batches.
const KEPT = 40;
const EACH = 5000;

function record(number) {
    return { id: number, name: 'item ' + (number % 97), price: { net: number % 1013, tax: (number % 7) / 100 }, tags: [number % 3] };
}

function total(records) {
    let sum = 0;
    for (const { price } of records) sum += price.net * (1 + price.tax);
    return sum;
}

function objects(batches) {
    const kept = [];
    let sum = 0;
    for (let batch = 0; batch < batches; batch++) {
        const records = [];
        for (let i = 0; i < EACH; i++) records.push(record(batch * EACH + i));
        kept[batch % KEPT] = records;
        sum += total(records);
    }
    return sum;
}

function arrays(batches) {
    const net = new Float64Array(KEPT * EACH);
    const tax = new Float64Array(KEPT * EACH);
    let sum = 0;
    for (let batch = 0; batch < batches; batch++) {
        const first = (batch % KEPT) * EACH;
        for (let i = 0; i < EACH; i++) {
            const number = batch * EACH + i;
            net[first + i] = number % 1013;
            tax[first + i] = (number % 7) / 100;
        }
        let batchSum = 0;
        for (let i = first; i < first + EACH; i++) batchSum += net[i] * (1 + tax[i]);
        sum += batchSum;
    }
    return sum;
}

const [, , which, batches] = process.argv;
console.log(Math.round(which === 'objects' ? objects(Number(batches)) : arrays(Number(batches))));
