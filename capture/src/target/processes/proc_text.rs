//! Parses texts of /proc. Names in them are chosen by the process and can hold anything.

use engine::event::ThreadState;

/// `PF_KTHREAD` of the flags in /proc/PID/stat (include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The fields of /proc/PID/stat and /proc/PID/task/TID/stat that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The state letter.
    pub state: u8,
    /// Parent process.
    pub parent: u32,
    /// Whether the process is a kernel thread.
    pub is_kernel_thread: bool,
    /// Start, in clock ticks since boot.
    pub start_ticks: u64,
    /// Nice value.
    pub nice: Option<i8>,
    /// CPU time of all threads of the process, in clock ticks.
    pub cpu_ticks: u64,
}

impl Stat {
    /// Parses the line. The name is in parentheses and may itself hold `) R 1 2`, so the last parenthesis
    /// counts.
    pub fn parse(text: &str) -> Option<Stat> {
        let (_, after) = text.rsplit_once(')')?;
        // Fields are numbered as in proc(5); 3 is the state.
        let field = |number: usize| after.split_ascii_whitespace().nth(number - 3);
        Some(Stat {
            state: *field(3)?.as_bytes().first()?,
            parent: field(4)?.parse().ok()?,
            is_kernel_thread: field(9)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
            start_ticks: field(22)?.parse().ok()?,
            nice: field(19)?.parse().ok(),
            cpu_ticks: field(14)?.parse::<u64>().ok()?.saturating_add(field(15)?.parse().ok()?),
        })
    }

    /// Whether the process has ended, although it is still listed.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// The state in the engine's terms.
    pub fn thread_state(&self) -> ThreadState {
        match self.state {
            b'R' => ThreadState::Running,
            b'S' | b'D' | b'I' | b'P' => ThreadState::Sleeping,
            b'T' | b't' => ThreadState::Stopped,
            _ => ThreadState::Unknown,
        }
    }
}

/// The value of a field in /proc/PID/status.
pub fn status_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// CPU time in nanoseconds: the first number of schedstat.
pub fn cpu_time_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

/// One line of /proc/PID/maps, which describes a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapLine<'a> {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Whether the memory may be executed.
    pub executable: bool,
    /// Offset in the file at which the mapping begins.
    pub file_offset: u64,
    /// Device: major and minor number.
    pub device: (u32, u32),
    /// Inode; 0 if no file is mapped.
    pub inode: u64,
    /// Path of the file, in the form in which the kernel writes it (newlines as `\012`).
    pub path: &'a str,
}

impl<'a> MapLine<'a> {
    /// Parses a line.
    pub fn parse(line: &'a str) -> Option<MapLine<'a>> {
        let mut rest = line;
        let mut next = || {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after.trim_start_matches(' ');
            (!word.is_empty()).then_some(word)
        };
        let (start, end) = next()?.split_once('-')?;
        let permissions = next()?;
        let offset = next()?;
        let (major, minor) = next()?.split_once(':')?;
        let inode = next()?;
        Some(MapLine {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            executable: permissions.contains('x'),
            file_offset: u64::from_str_radix(offset, 16).ok()?,
            device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
            inode: inode.parse().ok()?,
            path: rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "7 7 0 -1 4194560 1 0 0 0 3 4 0 0 20 0 1 0 4711 0 0";

    #[test]
    fn a_process_name_in_stat_cannot_imitate_later_fields() {
        let text = format!("12 (a) Z 1 2 3) S 5 {TAIL}");
        let stat = Stat::parse(&text).unwrap();
        assert_eq!(
            stat,
            Stat {
                state: b'S',
                parent: 5,
                is_kernel_thread: false,
                start_ticks: 4711,
                nice: Some(0),
                cpu_ticks: 7
            }
        );
        assert!(!stat.is_dead());
        assert_eq!(Stat::parse("12 (a"), None);
        assert_eq!(Stat::parse("12 (a) S 5 7"), None);
    }

    #[test]
    fn stat_shows_kernel_threads_and_zombies() {
        let text = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0";
        assert!(Stat::parse(text).unwrap().is_kernel_thread);
        let text = format!("12 (gone) Z 5 {TAIL}");
        assert!(Stat::parse(&text).unwrap().is_dead());
    }

    #[test]
    fn a_status_field_is_found_by_its_whole_name() {
        let text = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\nNSpid:\t70\t3\n";
        assert_eq!(status_field(text, "Seccomp"), Some("2"));
        assert_eq!(status_field(text, "NSpid"), Some("70\t3"));
        assert_eq!(status_field(text, "Sec"), None);
    }

    #[test]
    fn lines_of_maps_are_parsed_with_their_paths() {
        let line = "55d0c000-55d0d000 r-xp 00001000 fd:0a 1234                       /opt/a b (deleted)";
        let map = MapLine::parse(line).unwrap();
        assert_eq!((map.start, map.end, map.file_offset), (0x55d0_c000, 0x55d0_d000, 0x1000));
        assert_eq!((map.executable, map.device, map.inode), (true, (0xfd, 10), 1234));
        assert_eq!(map.path, "/opt/a b (deleted)");
        assert_eq!(MapLine::parse("7f00-7f01 rw-p 0 00:00 0").unwrap().path, "");
        assert_eq!(MapLine::parse("nonsense"), None);
        assert_eq!(cpu_time_ns("123 4 5\n"), Some(123));
    }
}
