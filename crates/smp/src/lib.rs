//! The schedulers of *Enhancing Linux Scheduler Scalability* (Kravetz, Franke,
//! Nagar and Ravindran, 2001).

pub mod run_queue;
