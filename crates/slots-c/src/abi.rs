//! The functions of the header.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::ptr;

use ::prorata_slots::{
    AccountName, Amount, Cell, Ended, Fraction, Level, Runs, SlotRequest, Slots, SlotsError,
    SlotsNews, SlotsWatch,
};

use crate::failure::guarded;

/// As in the header.
pub type Revoked = Option<unsafe extern "C" fn(u32, u32, u32, *mut c_void)>;

/// The caller's callback for a claim.
#[derive(Clone, Copy)]
struct Callback {
    revoked: Revoked,
    data: *mut c_void,
}

/// A handle.
#[allow(non_camel_case_types, reason = "the header's name")]
pub struct prorata_slots {
    slots: Slots,
    watch: SlotsWatch,
    callbacks: BTreeMap<Cell, Callback>,
}

/// As in the header.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types, reason = "the header's name")]
pub struct prorata_slot_request {
    /// The row.
    pub row: u32,
    /// The column.
    pub column: u32,
    /// 0 process, 1 thread.
    pub runs: u32,
    /// The process or the thread; 0 is the caller.
    pub id: u32,
    /// The level, lowest first.
    pub level: u32,
    /// 0.
    pub reserved: u32,
    /// How long from now; 0: until it is freed.
    pub expires_ns: u64,
    /// What to call when the claim ends.
    pub revoked: Revoked,
    /// Handed to it.
    pub data: *mut c_void,
}

/// As in the header.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the header's name")]
pub struct prorata_token_info {
    /// Free to spend.
    pub count: u64,
    /// In claims.
    pub spent: u64,
    /// The weight.
    pub weight: u32,
    /// 0.
    pub reserved: u32,
}

/// As in the header.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the header's name")]
pub struct prorata_table_info {
    /// CPUs.
    pub rows: u32,
    /// Slots of a period.
    pub columns: u32,
    /// Length of a slot.
    pub slot_ns: u64,
    /// When slot zero began.
    pub epoch_ns: u64,
    /// The number of the last change.
    pub generation: u64,
}

fn wrong(text: impl Into<String>) -> SlotsError {
    SlotsError::Wish(text.into())
}

/// Connects to the daemon; null on failure.
///
/// # Safety
///
/// `socket` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_slots_open(socket: *const c_char) -> *mut prorata_slots {
    guarded(ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let socket = unsafe { text(socket) }?;
        let slots = Slots::open(socket.as_deref().map(Path::new))?;
        let watch = slots.watch(false)?;
        let handle = prorata_slots {
            slots,
            watch,
            callbacks: BTreeMap::new(),
        };
        Ok::<_, SlotsError>(Box::into_raw(Box::new(handle)))
    })
}

/// Closes a handle. Claims stay.
///
/// # Safety
///
/// `handle` is null or came from [`prorata_slots_open`], and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_slots_close(handle: *mut prorata_slots) {
    if !handle.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// A string of the caller's; none for null.
///
/// # Safety
///
/// It is null or a string.
unsafe fn text(text: *const c_char) -> Result<Option<String>, SlotsError> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    let text = text.map_err(|_| wrong("a name is no UTF-8: give another one"))?;
    Ok(Some(text.to_owned()))
}

/// A handle of the caller's.
///
/// # Safety
///
/// It is null or came from [`prorata_slots_open`], and no other thread uses it.
unsafe fn open<'a>(handle: *mut prorata_slots) -> Result<&'a mut prorata_slots, SlotsError> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_mut() }.ok_or_else(|| wrong("there is no handle: open one"))
}

/// A vector of the caller's.
///
/// # Safety
///
/// `length` is null or a number, and `vector` has so many elements.
unsafe fn vector<'a>(
    vector: *mut prorata_slot_request,
    length: *mut c_int,
) -> Result<(&'a mut [prorata_slot_request], &'a mut c_int), SlotsError> {
    // SAFETY: the caller's promise.
    let length = unsafe { length.as_mut() }.ok_or_else(|| wrong("there is no length: give one"))?;
    let count = usize::try_from(*length).map_err(|_| wrong("a length below zero: give another"))?;
    if vector.is_null() && count > 0 {
        return Err(wrong("there is no vector: give one"));
    }
    let elements: &mut [_] = match count {
        0 => &mut [],
        // SAFETY: the caller's promise; it is not null.
        _ => unsafe { std::slice::from_raw_parts_mut(vector, count) },
    };
    Ok((elements, length))
}

fn level(number: u32) -> Result<Level, SlotsError> {
    let level = Level::ALL.get(number as usize).copied();
    level.ok_or_else(|| wrong(format!("there is no level {number}: take 0 to 6")))
}

/// The shape of the table.
///
/// # Safety
///
/// `handle` is one, and `info` null or to be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_table_info(
    handle: *mut prorata_slots,
    info: *mut prorata_table_info,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (handle, info) = unsafe { (open(handle)?, info.as_mut()) };
        let info = info.ok_or_else(|| wrong("there is no place for the answer: give one"))?;
        let table = handle.slots.table();
        let geometry = table.geometry();
        *info = prorata_table_info {
            rows: geometry.rows(),
            columns: geometry.columns(),
            slot_ns: geometry.slot_ns(),
            epoch_ns: geometry.begin_ns(0),
            generation: table.generation(),
        };
        Ok::<_, SlotsError>(0)
    })
}

/// The CPU of a row.
///
/// # Safety
///
/// `handle` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_cpu_of_row(handle: *mut prorata_slots, row: u32) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let handle = unsafe { open(handle) }?;
        let cpu = handle.slots.table().cpus().get(row as usize);
        let cpu = cpu.ok_or_else(|| wrong(format!("there is no row {row}: name one of the table")));
        Ok::<_, SlotsError>(*cpu? as c_int)
    })
}

/// Whether a slot is claimed.
///
/// # Safety
///
/// `handle` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_is_claimed(
    handle: *mut prorata_slots,
    row: u32,
    column: u32,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let handle = unsafe { open(handle) }?;
        let cell = Cell { row, column };
        let snapshot = handle.slots.table().snapshot();
        let snapshot = snapshot.ok_or(SlotsError::Restless)?;
        let claimed = snapshot.claims.iter().any(|claim| claim.cell == cell);
        Ok::<_, SlotsError>(c_int::from(claimed))
    })
}

/// `claim_slots`.
///
/// # Safety
///
/// `handle` is one; `vector` has `*length` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_claim_slots(
    handle: *mut prorata_slots,
    elements: *mut prorata_slot_request,
    length: *mut c_int,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (handle, (elements, length)) = unsafe { (open(handle)?, vector(elements, length)?) };
        // If the call fails as a whole, none succeeded.
        *length = 0;
        let requests = elements.iter().map(request).collect::<Result<_, _>>()?;
        let claimed = handle.slots.claim(requests)?;
        let mut kept = 0;
        for place in 0..elements.len() {
            if claimed.refused.iter().all(|(refused, _)| *refused != place) {
                let element = elements[place];
                let callback = Callback {
                    revoked: element.revoked,
                    data: element.data,
                };
                handle.callbacks.insert(cell(&element), callback);
                elements[kept] = element;
                kept += 1;
            }
        }
        *length = kept as c_int;
        match claimed.refused.first() {
            Some((_, why)) => Err(SlotsError::Refused(why.clone())),
            None => Ok(0),
        }
    })
}

fn cell(element: &prorata_slot_request) -> Cell {
    Cell {
        row: element.row,
        column: element.column,
    }
}

fn request(element: &prorata_slot_request) -> Result<SlotRequest, SlotsError> {
    let runs = match (element.runs, element.id) {
        (0, 0) => Runs::Process(std::process::id()),
        (0, pid) => Runs::Process(pid),
        // SAFETY: takes nothing and returns a number.
        (1, 0) => Runs::Thread(unsafe { libc::gettid() } as u32),
        (1, tid) => Runs::Thread(tid),
        (other, _) => return Err(wrong(format!("nothing of kind {other} runs: take 0 or 1"))),
    };
    Ok(SlotRequest {
        cell: cell(element),
        runs,
        level: level(element.level)?,
        expires_ns: (element.expires_ns > 0).then_some(element.expires_ns),
    })
}

/// `free_slots`.
///
/// # Safety
///
/// As for [`prorata_claim_slots`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_free_slots(
    handle: *mut prorata_slots,
    elements: *mut prorata_slot_request,
    length: *mut c_int,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (handle, (elements, length)) = unsafe { (open(handle)?, vector(elements, length)?) };
        let kept = handle.slots.free(elements.iter().map(cell).collect())?;
        let mut left = 0;
        for place in 0..elements.len() {
            let element = elements[place];
            if kept.contains(&cell(&element)) {
                elements[left] = element;
                left += 1;
            } else {
                handle.callbacks.remove(&cell(&element));
            }
        }
        *length = left as c_int;
        match kept.first() {
            Some(cell) => Err(SlotsError::Refused(format!(
                "slot {cell} is not yours, or nobody has claimed it"
            ))),
            None => Ok(0),
        }
    })
}

/// `get_tokens`.
///
/// # Safety
///
/// `handle` is one; `tokens` has room for all levels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_get_tokens(
    handle: *mut prorata_slots,
    tokens: *mut prorata_token_info,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let handle = unsafe { open(handle) }?;
        if tokens.is_null() {
            return Err(wrong("there is no place for the answer: give one"));
        }
        let report = handle.slots.tokens(None)?;
        for level in report.levels {
            let info = prorata_token_info {
                count: level.free,
                spent: level.spent,
                weight: level.weight,
                reserved: 0,
            };
            // SAFETY: there is room for all levels, by the caller's promise.
            unsafe { tokens.add(level.level.index()).write(info) };
        }
        Ok(0)
    })
}

/// `set_tokens`.
///
/// # Safety
///
/// `handle` is one, and `user` a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_set_tokens(
    handle: *mut prorata_slots,
    user: *const c_char,
    number: u32,
    count: i64,
    weight: u32,
    absolute: c_int,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (handle, user) = unsafe { (open(handle)?, text(user)?) };
        let user = user.ok_or_else(|| wrong("there is no user: name one"))?;
        let amount = match absolute {
            0 => Amount::Delta(count),
            _ => Amount::Absolute(
                u32::try_from(count)
                    .map_err(|_| wrong(format!("{count} tokens: take 0 to {}", u32::MAX)))?,
            ),
        };
        let weight = (weight > 0).then_some(weight);
        handle
            .slots
            .set_tokens(AccountName::User(user), level(number)?, amount, weight)?;
        Ok::<_, SlotsError>(0)
    })
}

/// `donate_tokens`: how many moved.
///
/// # Safety
///
/// `handle` is one, and `client` a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_donate_tokens(
    handle: *mut prorata_slots,
    client: *const c_char,
    number: u32,
    count: u32,
) -> i64 {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (handle, client) = unsafe { (open(handle)?, text(client)?) };
        let client = client.ok_or_else(|| wrong("there is no client: name one"))?;
        let to = AccountName::Client(client);
        Ok::<_, SlotsError>(handle.slots.donate(to, level(number)?, count)? as i64)
    })
}

/// `reserve_slots`.
///
/// # Safety
///
/// `handle` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_reserve_slots(
    handle: *mut prorata_slots,
    row: u32,
    numerator: u32,
    denominator: u32,
    immediate: c_int,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let handle = unsafe { open(handle) }?;
        let fraction = Fraction {
            numerator,
            denominator,
        };
        handle.slots.reserve(Some(row), fraction, immediate != 0)?;
        Ok::<_, SlotsError>(0)
    })
}

/// Readable when there may be news.
///
/// # Safety
///
/// `handle` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_slots_fd(handle: *mut prorata_slots) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let handle = unsafe { open(handle) }?;
        Ok::<_, SlotsError>(handle.watch.as_fd().as_raw_fd())
    })
}

/// Waits for news and runs the callback of the claim that ended.
///
/// # Safety
///
/// `handle` is one, and callbacks may be called with their data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prorata_slots_dispatch(handle: *mut prorata_slots) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let handle = unsafe { open(handle) }?;
        let mut ran = 0;
        // News that came together: the descriptor does not tell of the later ones.
        loop {
            // SAFETY: the caller's promise.
            ran += unsafe { dispatch_one(handle) }?;
            if !handle.watch.has_news() {
                return Ok::<_, SlotsError>(ran);
            }
        }
    })
}

/// # Safety
///
/// Callbacks may be called with their data.
unsafe fn dispatch_one(handle: &mut prorata_slots) -> Result<c_int, SlotsError> {
    let (cell, why) = match handle.watch.next_news()? {
        SlotsNews::Ended { cell, why, .. } => (cell, why),
        SlotsNews::Closed => return Err(SlotsError::Closed),
        SlotsNews::Freed(_) | SlotsNews::Missed(_) => return Ok(0),
    };
    let Some(Callback {
        revoked: Some(revoked),
        data,
    }) = handle.callbacks.remove(&cell)
    else {
        return Ok(0);
    };
    // SAFETY: the caller's promise.
    unsafe { revoked(cell.row, cell.column, reason(why), data) };
    Ok(1)
}

/// As the header numbers them.
fn reason(why: Ended) -> u32 {
    match why {
        Ended::Preempted => 0,
        Ended::Shared => 1,
        Ended::Reserved => 2,
        Ended::Freed => 3,
        Ended::Expired => 4,
        Ended::ScheduleeEnded => 5,
    }
}
