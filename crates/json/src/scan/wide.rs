//! The ends of long strings on processors with AVX2: 64 bytes at a time, with no branch for each escape.

use std::arch::x86_64::*;

use super::{End, StringProgress, escape};

/// Which bytes of a block are what, one bit each.
struct Kinds {
    quotes: u64,
    backslashes: u64,
    controls: u64,
}

/// Goes over a string as [`string_end`](super::string_end) does, as long as the text has whole blocks.
#[target_feature(enable = "avx2")]
pub(super) fn walk(text: &[u8], mut at: usize) -> StringProgress {
    let mut escaped = false;
    // Whether the first byte of the block is behind a backslash that is no escaped one.
    let mut carried = 0;
    while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let halves = halves(block);
        let kinds = kinds(halves);
        if (kinds.quotes | kinds.backslashes | kinds.controls | carried) == 0 {
            at += 64;
            continue;
        }
        let behind = behind_backslashes(kinds.backslashes, &mut carried);
        let ends = kinds.quotes & !behind;
        // All bits below the first end.
        let within = ends.wrapping_sub(1) & !ends;
        let behind = behind & within;
        if kinds.controls & within != 0 {
            return StringProgress::Bad;
        }
        if behind != 0 {
            let mut long = behind & !short(halves);
            while long != 0 {
                let here = at + long.trailing_zeros() as usize;
                // The backslash is in the text, since something is behind it.
                if escape(text, here - 1).is_none() {
                    return StringProgress::Bad;
                }
                long &= long - 1;
            }
        }
        escaped |= kinds.backslashes & within != 0;
        if ends != 0 {
            let at = at + ends.trailing_zeros() as usize + 1;
            return StringProgress::End(End { at, escaped });
        }
        at += 64;
    }
    // What is left begins with the backslash again.
    let at = at - carried as usize;
    StringProgress::Left { at, escaped }
}

/// Which bytes are behind a backslash that is not itself escaped. `carried` is whether the first one is, and becomes whether the
/// first of the next block is.
fn behind_backslashes(backslashes: u64, carried: &mut u64) -> u64 {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    // In each run of backslashes, those at an even distance from its first escape what follows. An addition that carries along
    // the run tells where it ends, and the parity of that place how long it was.
    let first = backslashes & !*carried;
    let runs = ((first << 1) | ODD).wrapping_sub(first) ^ ODD;
    let behind = runs ^ (backslashes | *carried);
    *carried = (runs & backslashes) >> 63;
    behind
}

/// The block, in the two registers that it takes.
#[target_feature(enable = "avx2")]
fn halves(block: &[u8; 64]) -> [__m256i; 2] {
    let (parts, _) = block.as_chunks::<8>();
    let word = |at: usize| i64::from_le_bytes(parts[at]);
    [
        _mm256_set_epi64x(word(3), word(2), word(1), word(0)),
        _mm256_set_epi64x(word(7), word(6), word(5), word(4)),
    ]
}

#[target_feature(enable = "avx2")]
fn kinds([low, high]: [__m256i; 2]) -> Kinds {
    let (quote, backslash, last_control) = (splat(b'"'), splat(b'\\'), splat(b' ' - 1));
    Kinds {
        quotes: bits(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(high, quote)),
        backslashes: bits(
            _mm256_cmpeq_epi8(low, backslash),
            _mm256_cmpeq_epi8(high, backslash),
        ),
        controls: bits(
            _mm256_cmpeq_epi8(_mm256_min_epu8(low, last_control), low),
            _mm256_cmpeq_epi8(_mm256_min_epu8(high, last_control), high),
        ),
    }
}

/// Which bytes are an escape with nothing but the backslash before them: each of `"\/bfnrt`.
#[target_feature(enable = "avx2")]
fn short([low, high]: [__m256i; 2]) -> u64 {
    !bits(not_short(low), not_short(high))
}

#[target_feature(enable = "avx2")]
fn not_short(half: __m256i) -> __m256i {
    // One bit for each upper half of a byte that there is: 2, 5, 6 and 7; and which of them go with each lower half.
    let upper = _mm_setr_epi8(0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    let lower = _mm_setr_epi8(0, 0, 13, 0, 8, 0, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1);
    let of = |table: __m128i| _mm256_broadcastsi128_si256(table);
    let uppers = _mm256_and_si256(_mm256_srli_epi16(half, 4), splat(0x0F));
    let both = _mm256_and_si256(
        // What is beyond ASCII finds nothing.
        _mm256_shuffle_epi8(of(lower), half),
        _mm256_shuffle_epi8(of(upper), uppers),
    );
    _mm256_cmpeq_epi8(both, _mm256_setzero_si256())
}

#[target_feature(enable = "avx2")]
fn splat(byte: u8) -> __m256i {
    _mm256_set1_epi8(i8::from_ne_bytes([byte]))
}

#[target_feature(enable = "avx2")]
fn bits(low: __m256i, high: __m256i) -> u64 {
    let low = _mm256_movemask_epi8(low).cast_unsigned();
    let high = _mm256_movemask_epi8(high).cast_unsigned();
    u64::from(high) << 32 | u64::from(low)
}
