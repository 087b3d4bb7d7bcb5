//! Probing with NEON: four heads a vector, whose bits an instruction counts byte by byte.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::aarch64::*;
use std::ops::ControlFlow;

use super::near::{One, Probe, STRETCH, Sink, check_near};
use super::packed::{LINE, LINE_HEADS};
use super::pipeline::pipeline;

/// [`probe`](super::near::probe) at [`Level::Neon`](super::Level).
#[target_feature(enable = "neon")]
pub(super) fn probe(probe: &Probe, queries: &[u64], sink: &mut Sink) -> ControlFlow<()> {
    let most = probe.head_distance();
    pipeline(probe, queries, |one| {
        scan_places::<true>(probe, most, one, sink)
    })
}

/// [`scan`](super::near::scan) at [`Level::Neon`](super::Level).
#[target_feature(enable = "neon")]
pub(super) fn scan(probe: &Probe, one: One, sink: &mut Sink) -> ControlFlow<()> {
    scan_places::<false>(probe, probe.head_distance(), one, sink)
}

/// A copy for each of the two callers: a function that only one calls is inlined.
#[inline]
#[target_feature(enable = "neon")]
fn scan_places<const PIPELINED: bool>(
    probe: &Probe,
    most: u32,
    one: One,
    sink: &mut Sink,
) -> ControlFlow<()> {
    let head = vdupq_n_u32(probe.run.head(one.value));
    if one.places.are_few() {
        let (heads, first) = probe.run.few(one.places);
        return match near(distances(heads, head), most) {
            0 => ControlFlow::Continue(()),
            near => check_near(probe, one, first, near, sink),
        };
    }
    let (lines, first) = probe.run.lines_of(one.places);
    let stretches = lines.chunks(STRETCH);
    for (lines, first) in stretches.zip((first..).step_by(STRETCH * LINE_HEADS)) {
        let mut least = vdupq_n_u32(u32::MAX);
        for line in lines {
            let [a, b, c, d] = distances(line, head);
            least = vminq_u32(least, vminq_u32(vminq_u32(a, b), vminq_u32(c, d)));
        }
        if vminvq_u32(least) > most {
            continue;
        }
        for (line, first) in lines.iter().zip((first..).step_by(LINE_HEADS)) {
            let near = near(distances(line, head), most);
            if near != 0 {
                check_near(probe, one, first, near, sink)?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// How many bits of each head of a line differ.
#[inline]
#[target_feature(enable = "neon")]
fn distances(line: &[u8; LINE], head: uint32x4_t) -> [uint32x4_t; 4] {
    // SAFETY: a line has the 64 bytes of four vectors, and the load needs no alignment.
    let heads = unsafe { vld1q_u8_x4(line.as_ptr()) };
    [heads.0, heads.1, heads.2, heads.3].map(|heads| {
        let difference = veorq_u8(heads, vreinterpretq_u8_u32(head));
        vpaddlq_u16(vpaddlq_u8(vcntq_u8(difference)))
    })
}

/// Which distances are `most` or less, a bit each.
#[inline]
#[target_feature(enable = "neon")]
fn near(distances: [uint32x4_t; 4], most: u32) -> u16 {
    let [a, b, c, d] = distances.map(|distances| vcleq_u32(distances, vdupq_n_u32(most)));
    let first = vcombine_u16(vmovn_u32(a), vmovn_u32(b));
    let second = vcombine_u16(vmovn_u32(c), vmovn_u32(d));
    u16::from(byte_of(first)) | u16::from(byte_of(second)) << 8
}

/// A bit for each lane, which is all ones or 0.
#[inline]
#[target_feature(enable = "neon")]
fn byte_of(lanes: uint16x8_t) -> u8 {
    let bits = vcreate_u8(0x8040_2010_0804_0201);
    vaddv_u8(vand_u8(vmovn_u16(lanes), bits))
}
