use pgrx::pg_sys;

/// Returns an unpredictable number of 53 bits, which every client language can represent exactly.
pub fn number() -> i64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: the call writes `bytes.len()` bytes into `bytes`.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        pgrx::error!("could not generate a random number");
    }
    (i64::from_ne_bytes(bytes) & ((1 << 53) - 1)).max(1)
}
