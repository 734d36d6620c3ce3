//! A program with a limit on its CPU time, as in a container.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use longpole_tests::{Background, Longpole, Recorded, skip, skip_unless_built, skip_unless_live, workload};

/// A control group with a limit of this many hundredths of a CPU. The group is removed when this value is dropped.
struct Limited(PathBuf);

impl Limited {
    /// Makes the group. `None`: the control groups of this machine cannot limit CPU time.
    fn to(hundredths: u32) -> io::Result<Option<Limited>> {
        let mounts = fs::read_to_string("/proc/mounts")?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let name = format!("longpole-quota-{}", std::process::id());
        let quota = u64::from(hundredths) * 1000;
        let one = mounts
            .clone()
            .find(|fields| fields[2] == "cgroup" && fields[3].split(',').any(|own| own == "cpu"));
        if let Some(fields) = one {
            let group = Limited(PathBuf::from(fields[1]).join(name));
            fs::create_dir(&group.0)?;
            fs::write(group.0.join("cpu.cfs_period_us"), "100000")?;
            fs::write(group.0.join("cpu.cfs_quota_us"), quota.to_string())?;
            return Ok(Some(group));
        }
        let Some(fields) = mounts.find(|fields| fields[2] == "cgroup2") else { return Ok(None) };
        let root = PathBuf::from(fields[1]);
        if !fs::read_to_string(root.join("cgroup.controllers"))?.split_whitespace().any(|own| own == "cpu") {
            return Ok(None);
        }
        fs::write(root.join("cgroup.subtree_control"), "+cpu")?;
        let group = Limited(root.join(name));
        fs::create_dir(&group.0)?;
        fs::write(group.0.join("cpu.max"), format!("{quota} 100000"))?;
        Ok(Some(group))
    }

    fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("a member");
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        for _ in 0..200 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A container may use 1.2 of two CPUs. If longpole ignored that limit, the program would seem to have too few busy
/// threads, and the time predicted for two CPUs would be a third too short.
#[test]
fn a_container_s_cpu_quota_is_read_simulated_and_named_as_limit() {
    skip_unless_live!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip!("one CPU only");
    }
    let program = skip_unless_built!(workload::build("work_stealing"));
    let Some(group) = Limited::to(120).expect("a control group") else {
        skip!("no control groups that limit CPU time")
    };
    let mut target = Command::new(&program);
    let target = Background::must_start(target.args(["2", "40000000000"]));
    group.take(target.pid());
    let recorded = Recorded::attach(&["-d", "2s"], target.pid());
    drop(target);
    let answer = Longpole::with(["predict", "--json", "--cpus", "2"]).and(&recorded.file).ok().stdout;
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["machine"]["quota_percent"], 120, "{answer}");
    let limit = &answer["limit"]["at"][0];
    assert_eq!((&limit["kind"], &limit["quota_percent"]), (&"quota".into(), &120.into()), "{answer}");
    // Without the limit, the program would have two CPUs.
    let lifted =
        Longpole::with(["predict", "--json", "--cpus", "2", "--quota", "none"]).and(&recorded.file).ok();
    let lifted: serde_json::Value = serde_json::from_str(&lifted.stdout).expect("JSON");
    let ns = |answer: &serde_json::Value| answer["results"][0]["time_ns"].as_f64().expect("a time");
    let faster = ns(&lifted) / ns(&answer);
    assert!((0.5..0.75).contains(&faster), "1.2 of 2 CPUs are 0.6: {faster}");
}
