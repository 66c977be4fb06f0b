//! What is kept when processes are killed, power is cut, disks fill up and streams are lost; backups and restorations.

mod absence;
mod backup;
mod chaos;
mod crashes;
mod disk_faults;
mod lost_data;
mod power_loss;
mod restore;
mod streams;
