//go:build amd64 && !purego

#include "textflag.h"

// For every value of four bits, two codes: how many of them have the low bit
// set, and in the upper half of the byte how many have the high bit set.
DATA codes<>+0(SB)/8, $0x1211020111100100
DATA codes<>+8(SB)/8, $0x2221121121201110
GLOBL codes<>(SB), RODATA|NOPTR, $16

// func countCodesAVX2(p *byte, n int) (low, high int, both bool, zero uint32)
TEXT ·countCodesAVX2(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTI128 codes<>(SB), Y14
	MOVQ $0x0f0f0f0f0f0f0f0f, AX
	VMOVQ AX, X15
	VPBROADCASTQ X15, Y15
	MOVQ $0x5555555555555555, AX
	VMOVQ AX, X9
	VPBROADCASTQ X9, Y9
	VPXOR Y10, Y10, Y10 // low bits, in four words
	VPXOR Y11, Y11, Y11 // high bits
	VPXOR Y12, Y12, Y12 // both
	VPXOR Y13, Y13, Y13
	XORL R8, R8         // zero

codesLoop:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPCMPEQQ Y0, Y9, Y2
	VPCMPEQQ Y1, Y9, Y3
	VPOR Y2, Y3, Y2
	VPMOVMSKB Y2, AX
	ORL AX, R8
	VPSRLQ $1, Y0, Y4
	VPSRLQ $1, Y1, Y5
	VPAND Y0, Y4, Y4
	VPAND Y1, Y5, Y5
	VPOR Y4, Y12, Y12
	VPOR Y5, Y12, Y12
	VPSRLQ $4, Y0, Y2
	VPSRLQ $4, Y1, Y3
	VPAND Y15, Y0, Y0
	VPAND Y15, Y1, Y1
	VPAND Y15, Y2, Y2
	VPAND Y15, Y3, Y3
	VPSHUFB Y0, Y14, Y0
	VPSHUFB Y1, Y14, Y1
	VPSHUFB Y2, Y14, Y2
	VPSHUFB Y3, Y14, Y3
	VPADDB Y0, Y1, Y0
	VPADDB Y2, Y3, Y2
	VPADDB Y0, Y2, Y0   // at most eight of each
	VPSRLQ $4, Y0, Y1
	VPAND Y15, Y0, Y0
	VPAND Y15, Y1, Y1
	VPSADBW Y13, Y0, Y0
	VPSADBW Y13, Y1, Y1
	VPADDQ Y0, Y10, Y10
	VPADDQ Y1, Y11, Y11
	ADDQ $64, SI
	SUBQ $64, CX
	JNZ codesLoop

	VEXTRACTI128 $1, Y10, X0
	VPADDQ X0, X10, X10
	VPSRLDQ $8, X10, X0
	VPADDQ X0, X10, X10
	VMOVQ X10, AX
	MOVQ AX, low+16(FP)
	VEXTRACTI128 $1, Y11, X0
	VPADDQ X0, X11, X11
	VPSRLDQ $8, X11, X0
	VPADDQ X0, X11, X11
	VMOVQ X11, AX
	MOVQ AX, high+24(FP)
	VPTEST Y9, Y12      // the low bit's places
	SETNE AX
	MOVB AX, both+32(FP)
	MOVL R8, zero+36(FP)
	VZEROUPPER
	RET

// func finiteAVX2(p *byte, n int, f *Float) int
TEXT ·finiteAVX2(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ f+16(FP), AX
	VPBROADCASTQ (AX), Y13
	VPBROADCASTQ 8(AX), Y14
	VPBROADCASTQ 16(AX), Y15
	XORQ AX, AX

finiteLoop:
	VPAND (SI)(AX*1), Y13, Y0
	VPAND 32(SI)(AX*1), Y13, Y1
	VPADDQ Y0, Y14, Y0
	VPADDQ Y1, Y14, Y1
	VPOR Y0, Y1, Y0
	VPTEST Y15, Y0
	JNE finiteEnd
	ADDQ $64, AX
	CMPQ AX, CX
	JLT finiteLoop

finiteEnd:
	MOVQ AX, ret+24(FP)
	VZEROUPPER
	RET

// func literalAVX2(p *byte, n int, a uint16) (bytes, zeros, minus int)
TEXT ·literalAVX2(SB), NOSPLIT, $0-48
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	VPBROADCASTW a+16(FP), Y12
	MOVQ $0x7fff7fff7fff7fff, AX
	VMOVQ AX, X13
	VPBROADCASTQ X13, Y13
	VPXOR Y14, Y14, Y14
	VPXOR Y10, Y10, Y10 // zeros
	VPXOR Y11, Y11, Y11 // minus
	XORQ AX, AX

literalLoop:
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU 32(SI)(AX*1), Y1
	VPAND Y0, Y13, Y2
	VPAND Y1, Y13, Y3
	VPCMPEQW Y2, Y14, Y4 // all ones where the element is zero
	VPCMPEQW Y3, Y14, Y5
	VPCMPEQW Y2, Y12, Y6 // where it is of magnitude a
	VPCMPEQW Y3, Y12, Y7
	VPOR Y4, Y6, Y6
	VPOR Y5, Y7, Y7
	VPAND Y6, Y7, Y6
	VPMOVMSKB Y6, DX
	CMPL DX, $-1
	JNE literalEnd
	VPSUBW Y4, Y10, Y10
	VPSUBW Y5, Y10, Y10
	VPANDN Y0, Y4, Y0
	VPANDN Y1, Y5, Y1
	VPSRLW $15, Y0, Y0
	VPSRLW $15, Y1, Y1
	VPADDW Y0, Y11, Y11
	VPADDW Y1, Y11, Y11
	ADDQ $64, AX
	CMPQ AX, CX
	JLT literalLoop

literalEnd:
	MOVQ AX, bytes+24(FP)
	VPCMPEQW Y14, Y14, Y13 // all ones
	VPSRLW $15, Y13, Y13
	VPMADDWD Y13, Y10, Y10 // eight sums of two lanes
	VPMADDWD Y13, Y11, Y11
	VPHADDD Y11, Y10, Y10 // in each half two sums of zeros and two of minus
	VEXTRACTI128 $1, Y10, X11
	VPADDD X11, X10, X10
	VPHADDD X10, X10, X10
	VMOVD X10, AX
	MOVQ AX, zeros+32(FP)
	VPEXTRD $1, X10, AX
	MOVQ AX, minus+40(FP)
	VZEROUPPER
	RET
