//! PostgreSQL, driven by pgbench.

use super::kinds::{Fault, Server};

/// The databases belong to the user postgres, because the server refuses to run as root.
const PREPARE: &str = r#"
BIN=$(dirname "$(readlink -f "$(command -v postgres)")")
id postgres > /dev/null 2>&1 || useradd --system postgres
mkdir "$BASE/data"; chown postgres "$BASE/data"
AS="setpriv --reuid=postgres --regid=$(id -g postgres) --clear-groups"
$AS "$BIN/initdb" -D "$BASE/data" -A trust -E UTF8 --no-locale > /dev/null
$AS "$BIN/postgres" -D "$BASE/data" -p $PORT -k '' -c listen_addresses=127.0.0.1 -c fsync=off 2> "$BASE/log" &
until pg_isready -q -h 127.0.0.1 -p $PORT; do sleep 0.1; done
psql -q -h 127.0.0.1 -p $PORT -U postgres -c "
  create table counters (id int primary key, n int) with (fillfactor = 30);
  insert into counters select g, 0 from generate_series(1, 2000) g;
  create table orders (id int primary key, customer int, price int);
  insert into orders select g, g % 4000, g % 97 from generate_series(1, 40000) g"
psql -q -h 127.0.0.1 -p $PORT -U postgres -c "vacuum analyze"
kill -INT $!; wait $!
cat > "$BASE/one.sql" <<END
update counters set n = n + 1 where id = 1;
END
cat > "$BASE/many.sql" <<END
\set id random(1, 2000)
update counters set n = n + 1 where id = :id;
END
cat > "$BASE/customer.sql" <<END
\set customer random(0, 3999)
select sum(price) from orders where customer = :customer;
END
cat > "$BASE/key.sql" <<END
\set id random(1, 40000)
select price from orders where id = :id;
END
"#;

const START: &str = r#"
BIN=$(dirname "$(readlink -f "$(command -v postgres)")")
cp -a "$BASE/data" "$DIR/data"
setpriv --reuid=postgres --regid=$(id -g postgres) --clear-groups "$BIN/postgres" --single -D "$DIR/data" postgres > /dev/null <<END
${SQL:-select 1}
END
exec setpriv --pdeathsig INT --reuid=postgres --regid=$(id -g postgres) --clear-groups \
  "$BIN/postgres" -D "$DIR/data" -p $PORT -k '' -c listen_addresses=127.0.0.1 -c autovacuum=off -c synchronous_commit=${COMMIT:-on}
"#;

const LOAD: &str = r#"
pgbench -n ${CONNECT:-} -M ${PROTOCOL:-simple} -c 8 -j 2 -T $TIME -h 127.0.0.1 -p $PORT -U postgres -f "$BASE/$QUERY.sql" postgres |
  sed -n 's,^tps = \([0-9.]*\).*,\1,p'
"#;

pub const POSTGRES: Server = Server {
    name: "PostgreSQL",
    needs: &[("postgres", "postgresql"), ("pgbench", "postgresql-contrib"), ("setpriv", "util-linux")],
    prepare: PREPARE,
    start: START,
    ready: "pg_isready -q -h 127.0.0.1 -p $PORT",
    load: LOAD,
    faults: &[
        Fault {
            told: "all update one row, not any of 2,000",
            cause: "the row's lock, held until the commit is on disk",
            wrong: &[("QUERY", "one")],
            right: &[("QUERY", "many")],
            words: &["lock ", "locks", "lockacquire", "procsleep", "wait for each other"],
            promise: &["split"],
        },
        Fault {
            told: "synchronous_commit on, not off",
            cause: "a sync of the log for each commit",
            wrong: &[("QUERY", "many")],
            right: &[("QUERY", "many"), ("COMMIT", "off")],
            words: &["sync"],
            promise: &["sync"],
        },
        Fault {
            told: "no index for what is asked",
            cause: "scanning the whole table",
            wrong: &[("QUERY", "customer")],
            right: &[("QUERY", "customer"), ("SQL", "create index on orders (customer)")],
            words: &["scan", "heap", "execinterp"],
            promise: &[],
        },
        Fault {
            told: "a connection for each query, not kept",
            cause: "starting a process for each query",
            wrong: &[("QUERY", "key"), ("CONNECT", "-C")],
            right: &[("QUERY", "key")],
            words: &["clone", "fork", "exit", "page faults", "new connections"],
            promise: &[],
        },
    ],
};
