//! Redis, driven by redis-benchmark.

use super::kinds::{Fault, Server};

const START: &str = r#"
exec redis-server --port $PORT --bind 127.0.0.1 --dir "$DIR" --save '' --appendonly ${APPEND:-no} --appendfsync ${SYNC:-no} \
  --hash-max-listpack-entries ${LISTPACK:-128} --enable-debug-command yes
"#;

/// The first load fills the server. `NOISE` is the command of a second client.
const LOAD: &str = r#"
cli() { redis-cli -p $PORT "$@"; }
if [ "$(cli dbsize | tr -dc 0-9)" -lt 1000 ]; then
  cli debug populate 30000 key 20 > /dev/null
  cli eval "for i = 1, 3000 do redis.call('hset', 'fields', 'field' .. i, i) end" 0 > /dev/null
fi
if [ -n "${NOISE:-}" ]; then
  timeout $TIME redis-cli -p $PORT -r -1 $NOISE > /dev/null &
fi
end=$(($(date +%s%N) / 1000000 + TIME * 1000)); begin=$(date +%s%N); done=0
while [ $(($(date +%s%N) / 1000000)) -lt $end ]; do
  redis-benchmark -p $PORT -c ${CLIENTS:-16} -n $COUNT -P ${PIPELINE:-1} -r 3000 $ASK > /dev/null; done=$((done + COUNT))
done
echo $done $((($(date +%s%N) - begin) / 1000)) | awk '{ print $1 / $2 * 1000000 }'
wait || true
"#;

pub const REDIS: Server = Server {
    name: "redis",
    needs: &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")],
    prepare: "",
    start: START,
    ready: "",
    load: LOAD,
    faults: &[
        Fault {
            told: "appendfsync always, not everysec",
            cause: "a sync of the log before the answers",
            wrong: &[
                ("APPEND", "yes"),
                ("SYNC", "always"),
                ("COUNT", "1000"),
                ("ASK", "set key:__rand_int__ value"),
            ],
            right: &[
                ("APPEND", "yes"),
                ("SYNC", "everysec"),
                ("COUNT", "4000"),
                ("ASK", "set key:__rand_int__ value"),
            ],
            words: &["sync"],
            promise: &["sync"],
        },
        Fault {
            told: "another client asks KEYS, not SCAN",
            cause: "a look at all keys, while the others wait",
            wrong: &[("NOISE", "keys no*"), ("COUNT", "4000"), ("ASK", "get key:__rand_int__")],
            right: &[("NOISE", "scan 0 match no*"), ("COUNT", "20000"), ("ASK", "get key:__rand_int__")],
            words: &["keyscommand", "stringmatch", "dictnext"],
            promise: &[],
        },
        Fault {
            told: "hash-max-listpack-entries 5000, not 128",
            cause: "a hash that is a list",
            wrong: &[("LISTPACK", "5000"), ("COUNT", "10000"), ("ASK", "hget fields field__rand_int__")],
            right: &[("COUNT", "20000"), ("ASK", "hget fields field__rand_int__")],
            words: &["lpfind", "lpskip", "lpnext", "listpack"],
            promise: &[],
        },
    ],
};
