//! The list of servers.

use super::go::GO;
use super::haproxy::HAPROXY;
use super::java::JAVA;
use super::kinds::Server;
use super::memcached::MEMCACHED;
use super::nginx::NGINX;
use super::postgres::POSTGRES;
use super::redis::REDIS;
use super::sqlite::SQLITE;

/// All servers, in the order of the table.
pub const SERVERS: [&Server; 8] = [&POSTGRES, &NGINX, &HAPROXY, &REDIS, &MEMCACHED, &SQLITE, &GO, &JAVA];
