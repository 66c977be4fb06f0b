//! Nothing acknowledged is lost when processes are killed, power is cut, disks fill up or streams are lost; backups and
//! restores; what nobody needs any more is deleted.

mod absence;
mod backup;
mod chaos;
mod crashes;
mod disk_faults;
mod lost_data;
mod message_limits;
mod power_loss;
mod restore;
mod retention;
mod rollback;
mod storage_limits;
mod streams;
