//! What outlives the process: everything after an orderly end, all but a tenth of a second after a kill.

mod journal;
mod kill;
mod leases;
mod overflow;
mod restart;
mod secrets;
