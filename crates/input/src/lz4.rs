//! LZ4: frames one after another.
//!
//! The decoder takes data that ends where a block should begin for its end. So it never sees the end of data. It gets
//! zeros then, which are the mark of the end of a frame. A frame that took any of them was cut off.

use std::io::{self, BufRead, ErrorKind, Read};

use lz4_flex::frame::FrameDecoder;

/// The first byte of a frame.
const MAGIC: u8 = 0x04;

/// The content of all frames.
pub(crate) struct Frames<R: BufRead> {
    /// The frame being read; `None` after the last, and after an error.
    frame: Option<FrameDecoder<Endless<R>>>,
}

/// A reader that goes on with zeros.
struct Endless<R> {
    from: R,
    has_ended: bool,
}

impl<R: BufRead> Frames<R> {
    /// Those of what begins with a frame.
    pub(crate) fn new(from: R) -> Self {
        let has_ended = false;
        let frame = Some(FrameDecoder::new(Endless { from, has_ended }));
        Self { frame }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(mut frame) = self.frame.take() {
            let read = frame.read(buffer);
            if frame.get_ref().has_ended {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let read = read?;
            if read > 0 || buffer.is_empty() {
                self.frame = Some(frame);
                return Ok(read);
            }
            let mut ended = frame.into_inner();
            match ended.from.fill_buf()?.first() {
                None => {}
                // Another decoder, since one keeps the buffers of its largest frame.
                Some(&MAGIC) => self.frame = Some(FrameDecoder::new(ended)),
                Some(_) => {
                    let problem = "trailing data after the lz4 data";
                    return Err(io::Error::new(ErrorKind::InvalidData, problem));
                }
            }
        }
        Ok(0)
    }
}

impl<R: BufRead> Read for Endless<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        self.has_ended = true;
        buffer.fill(0);
        Ok(buffer.len())
    }
}
