//! Starts a capture: loads, attaches and measures, in this order.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicU64, mpsc},
    thread::JoinHandle,
    time::Instant,
};

use aya::Ebpf;
use engine::event::HitCosts;

use super::overhead::{
    adaptive_sampling::AdaptiveSampling,
    budget::Budget,
    calibrate,
    controller::{self, Common, Later, Probes},
    cost_accounting::{CostAccounting, Costs},
};
use crate::probe::breakpoints::{FunctionProbes, LinkKeeper, LockProbes, function_probes, lock_probes};
use crate::probe::capture::Capture;
use crate::probe::error::{ProbeError, ProbeErrorKind};
use crate::probe::kernel::{KernelLayout, Link, attach_kernel, attach_network, kernel_programs};
use crate::probe::load::{LoadOptions, Loaded, load};
use crate::probe::options::{CaptureOptions, MOST_NUMBERS, number_limit};
use crate::probe::rights::check_namespace;
use crate::probe::sources::{Mappings, OwnTime, RequestCounter, Rings, kernel_locks, now_ns, sampling_clock};

/// Logs when each step ended, for `LONGPOLE_LOG=debug`.
struct Stages(Instant);

impl Stages {
    fn end(&self, what: &str) {
        log::debug!("{what}: {:.1} ms after the capture began", self.0.elapsed().as_secs_f64() * 1e3);
    }
}

impl Capture {
    /// Loads the programs, attaches everything and starts recording.
    ///
    /// # Errors
    ///
    /// This longpole has no programs, rights are missing, the kernel lacks something, or a target has ended. Everything
    /// that was attached before the error is detached again.
    pub fn start(options: CaptureOptions) -> Result<Capture, ProbeError> {
        check_namespace()?;
        let stages = Stages(Instant::now());
        let kernel = Arc::new(KernelLayout::read()?);
        stages.end("kernel's types");
        // A program that runs already is recorded before anything else is done.
        let is_early = options.running && options.functions.is_empty() && options.libc.is_empty();
        let keeper = LinkKeeper::new(options.link_program.clone());
        let mut costs = if is_early { None } else { HitCosting::begin(&options, &kernel, &keeper)? };
        let mut loaded = load_maps(&options, &kernel)?;
        stages.end("maps");
        loaded.programs(&kernel, &programs_at_once(&options, is_early))?;
        stages.end("programs");
        let network = attach_network(&mut loaded.ebpf, &kernel);
        let kernel_links = attach_kernel(&mut loaded.ebpf)?;
        stages.end("kernel's events");
        let Loaded { mut ebpf, shared, first_libc_counters, rings, sample_rings, logger, .. } = loaded;
        let early = is_early.then(|| {
            options.pids.iter().for_each(|pid| shared.track_another(*pid));
            (now_ns(), OwnTime::now())
        });
        if is_early {
            costs = HitCosting::begin(&options, &kernel, &keeper)?;
        }
        let (clock, tick_ns, sampling) = sampling_clock::start(&mut ebpf, &shared, &options)?;
        stages.end("clock");
        if options.sampling.is_some() && !is_early {
            sampling_clock::start_at_events(&mut ebpf, &kernel)?;
        }
        stages.end("samples at events");
        let (contention, requests) = count(&mut ebpf, &kernel, &options, is_early);
        stages.end("kernel's locks and requests");
        let hit_costs = costs.and_then(HitCosting::end);
        stages.end("cost of a hit");
        let accounting = CostAccounting::new(
            options.budget_ppm,
            Costs { hits: hit_costs, tick_ns },
            options.pids.iter().copied().collect(),
            options.children,
        );
        let probes = Probes {
            ebpf,
            functions: FunctionProbes::new(shared.clone(), Arc::clone(&keeper), first_libc_counters),
            operations: LockProbes::new(shared.clone(), Arc::clone(&keeper), first_libc_counters),
            clock,
            network,
            contention,
            requests,
            kernel: Arc::clone(&kernel),
            notes: Vec::new(),
            logger,
            full_rings: BTreeSet::new(),
            accounting,
            unwanted: BTreeSet::new(),
            not_followed: None,
        };
        // This comes before the processes' mappings are read, so that later mappings are reported.
        let mappings = watch_mappings(&options, shared.cpu_count);
        let mut capture = Capture {
            rings: Rings::new(rings),
            sample_rings: Rings::new(sample_rings),
            common: Arc::new(Common::new(probes, shared)),
            kernel_links,
            keeper,
            controller: None,
            own_notes: Vec::new(),
            hit_costs,
            idle_asks_by_chance: kernel.idle_asks_by_chance,
            ring_bytes: options.ring_bytes,
            mappings,
            missed: AtomicU64::new(0),
            looked_ns: AtomicU64::new(0),
            unprobed: Vec::new(),
            without_libc: Vec::new(),
            start_ns: 0,
            ended: false,
        };
        if options.uprobes {
            capture.probe_first(&options)?;
        }
        capture.begin(&options, early);
        // The overhead controller assumes that processes which are not recorded have ended, so it starts last.
        capture.start_controller(&options, sampling, is_early.then_some(kernel))?;
        Ok(capture)
    }

    /// Starts recording the targets. If that was done `early`, the recording began at that time, when longpole had used that
    /// CPU time.
    fn begin(&mut self, options: &CaptureOptions, early: Option<(u64, OwnTime)>) {
        let (start_ns, before) = early.unwrap_or_else(|| {
            options.pids.iter().for_each(|pid| self.track(*pid));
            (now_ns(), OwnTime::now())
        });
        self.start_ns = start_ns;
        self.common.lock().accounting.begin(start_ns, before);
        for number in 0..self.unprobed.len() {
            let (pid, _) = self.unprobed[number];
            self.leave_unprobed(pid, self.start_ns);
        }
    }

    /// Attaches the probes that were chosen before the capture began.
    fn probe_first(&mut self, options: &CaptureOptions) -> Result<(), ProbeError> {
        let strict = options.pids.len().saturating_sub(options.optional_pids);
        for (number, pid) in options.pids.iter().enumerate() {
            match self.attacher().attach_functions(*pid, now_ns(), &options.functions) {
                Err(error) if number >= strict => self.unprobed.push((*pid, error)),
                result => result?,
            }
        }
        for libc in &options.libc {
            if let Err(error) = self.attacher().attach_libc(libc, None) {
                self.without_libc.push((libc.pid, error));
            }
        }
        Ok(())
    }

    /// Starts the overhead controller. `later`: its thread first starts what was postponed: stacks at sleeps and wake-ups, and
    /// counting waits for locks of the kernel and requests.
    fn start_controller(
        &mut self,
        options: &CaptureOptions,
        sampling: AdaptiveSampling,
        later: Option<Arc<KernelLayout>>,
    ) -> Result<(), ProbeError> {
        let (stop, stopped) = mpsc::channel();
        let common = self.common.clone();
        let budget = Budget::new(options.budget_ppm);
        let of_events = AdaptiveSampling::of_events(options.budget_ppm);
        let what = Later {
            pids: options.pids.clone(),
            samples: options.sampling.is_some(),
            every_request: options.every_request,
        };
        let thread = std::thread::Builder::new()
            .name("longpole-budget".into())
            .spawn(move || {
                if let Some(kernel) = later {
                    controller::begin_later(&common, &kernel, &what);
                }
                controller::run(&common, budget, [sampling, of_events], &stopped);
            })
            .map_err(|error| ProbeError::from_cause("cannot start a thread", &error))?;
        self.controller = Some((stop, thread));
        Ok(())
    }
}

/// Starts counting waits for locks of the kernel, and requests, unless that is done `later`.
fn count(
    ebpf: &mut Ebpf,
    kernel: &KernelLayout,
    options: &CaptureOptions,
    later: bool,
) -> (Vec<Link>, Option<RequestCounter>) {
    if later {
        return (Vec::new(), None);
    }
    let requests = RequestCounter::begin(ebpf, kernel, &options.pids, options.every_request);
    (kernel_locks::attach(ebpf, kernel), requests)
}

/// Starts watching which files processes map, if probes, samples or contexts depend on that.
fn watch_mappings(options: &CaptureOptions, cpus: usize) -> Option<Mappings> {
    let is_needed = options.uprobes || options.sampling.is_some() || options.thread_contexts;
    let watch = is_needed.then(|| Mappings::watch(u32::try_from(cpus).unwrap_or(0)))?;
    watch
        .inspect_err(|error| {
            log::warn!("libraries that are loaded later are seen late or not at all: {error}")
        })
        .ok()
}

/// The thread that measures the cost of a probe hit.
struct HitCosting(JoinHandle<Result<HitCosts, ProbeError>>);

impl HitCosting {
    /// Starts the measurement, if probes on functions are wanted.
    fn begin(
        options: &CaptureOptions,
        kernel: &Arc<KernelLayout>,
        keeper: &Arc<LinkKeeper>,
    ) -> Result<Option<HitCosting>, ProbeError> {
        let begin = || calibrate::begin(Arc::clone(kernel), Arc::clone(keeper));
        let thread = options.uprobes.then(begin).transpose();
        let thread = thread.map_err(|error| ProbeError::from_cause("cannot start a thread", &error))?;
        Ok(thread.map(HitCosting))
    }

    /// The measured cost, if any.
    fn end(self) -> Option<HitCosts> {
        let failed = || ProbeError::new(ProbeErrorKind::Failed, "the thread that measures it failed", "");
        self.0
            .join()
            .unwrap_or_else(|_| Err(failed()))
            .inspect_err(|error| log::warn!("the cost of a probe hit is not known: {error}"))
            .ok()
    }
}

fn load_maps(options: &CaptureOptions, kernel: &KernelLayout) -> Result<Loaded, ProbeError> {
    let highest = options.functions.iter().map(|function| function.id.saturating_add(1)).max();
    let mut functions = highest.unwrap_or(0).min(MOST_NUMBERS);
    // More functions may come: those of children, and of programs that processes execute.
    if options.uprobes {
        functions = functions.max(number_limit(options.most_functions));
    }
    load(
        kernel,
        &LoadOptions {
            children: options.children,
            exchanges: options.every_request,
            thread_contexts: options.thread_contexts,
            ring_bytes: options.ring_bytes,
            max_rate_hz: options.max_rate_hz,
            max_depth: options.max_depth,
            functions,
            sampling: options.sampling,
        },
    )
}

/// Programs that are loaded before recording begins. `is_early`: only those for events and ticks.
fn programs_at_once(options: &CaptureOptions, is_early: bool) -> Vec<&'static str> {
    let mut names = kernel_programs().to_vec();
    if options.sampling.is_some() {
        names.push(sampling_clock::TICK);
        if !is_early {
            names.extend(sampling_clock::AT_EVENTS.map(|(program, _)| program));
        }
    }
    if !options.functions.is_empty() {
        names.push(function_probes::PROGRAM);
    }
    if !options.libc.is_empty() {
        names.push(lock_probes::PROGRAM);
    }
    names
}
