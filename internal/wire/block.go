package wire

import (
	"encoding/binary"
	"hash/crc32"
	gosync "sync"

	"github.com/klauspost/compress/zstd"
)

// header is what stands before the frames of a block. Little endian:
//
//	 0  8  sync marker
//	 8  1  kind of block
//	 9  1  codec of the payload
//	10  2  reserved, zero
//	12  4  length of the frames before compression
//	16  4  length of the payload as stored
//	20  4  number of frames
//	24  8  sequence number, from 0
//	32  4  CRC-32C of the payload as stored
//	36  4  CRC-32C of the 36 bytes above
type header struct {
	kind, codec  uint8
	raw, stored  uint32
	frames       uint32
	sequence     uint64
	payloadCheck uint32
}

func (h *header) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, blockSync...)
	dst = append(dst, h.kind, h.codec, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, h.raw)
	dst = binary.LittleEndian.AppendUint32(dst, h.stored)
	dst = binary.LittleEndian.AppendUint32(dst, h.frames)
	dst = binary.LittleEndian.AppendUint64(dst, h.sequence)
	dst = binary.LittleEndian.AppendUint32(dst, h.payloadCheck)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// parseHeader reads a block's header; ok is false unless it is whole, undamaged and within limits.
func parseHeader(data []byte) (h header, ok bool) {
	if len(data) < blockHeaderSize || string(data[:len(blockSync)]) != blockSync {
		return h, false
	}
	check := binary.LittleEndian.Uint32(data[36:])
	if crc32.Checksum(data[:36], castagnoli) != check {
		return h, false
	}
	h = header{
		kind: data[8], codec: data[9],
		raw:          binary.LittleEndian.Uint32(data[12:]),
		stored:       binary.LittleEndian.Uint32(data[16:]),
		frames:       binary.LittleEndian.Uint32(data[20:]),
		sequence:     binary.LittleEndian.Uint64(data[24:]),
		payloadCheck: binary.LittleEndian.Uint32(data[32:]),
	}
	return h, h.raw <= MaxBlock && h.stored <= MaxBlock
}

// fileHeader is the start of a recording: magic, major and minor version, CRC-32C of these 12 bytes.
func fileHeader(major, minor uint16) []byte {
	dst := []byte(Magic)
	dst = binary.LittleEndian.AppendUint16(dst, major)
	dst = binary.LittleEndian.AppendUint16(dst, minor)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
}

// compressor of a Writer: small windows keep the engine small.
func newCompressor() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1<<19), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

var decompressor = gosync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxBlock), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
})
