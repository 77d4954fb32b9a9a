//go:build amd64 && !purego

#include "textflag.h"

// func tileProductAVX2(tile, x *float32, stride, count, n int, scales, lanes *float32)
// Four outputs (tile rows 512 bytes apart) for two rows of x at a time.
TEXT ·tileProductAVX2(SB), NOSPLIT, $0-56
	MOVQ tile+0(FP), SI
	MOVQ x+8(FP), DI
	MOVQ stride+16(FP), R8
	SHLQ $2, R8
	MOVQ count+24(FP), R9
	MOVQ n+32(FP), R10
	SHLQ $2, R10
	MOVQ scales+40(FP), R11
	MOVQ lanes+48(FP), R12

pair:
	CMPQ R9, $2
	JLT  single
	LEAQ (DI)(R8*1), R13
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	XORQ AX, AX

pairLoop:
	VMOVUPS (DI)(AX*1), Y8
	VMOVUPS (R13)(AX*1), Y9
	VMOVUPS (SI)(AX*1), Y10
	VMULPS  Y8, Y10, Y11
	VMULPS  Y9, Y10, Y12
	VADDPS  Y11, Y0, Y0
	VADDPS  Y12, Y4, Y4
	VMOVUPS 512(SI)(AX*1), Y13
	VMULPS  Y8, Y13, Y14
	VMULPS  Y9, Y13, Y15
	VADDPS  Y14, Y1, Y1
	VADDPS  Y15, Y5, Y5
	VMOVUPS 1024(SI)(AX*1), Y10
	VMULPS  Y8, Y10, Y11
	VMULPS  Y9, Y10, Y12
	VADDPS  Y11, Y2, Y2
	VADDPS  Y12, Y6, Y6
	VMOVUPS 1536(SI)(AX*1), Y13
	VMULPS  Y8, Y13, Y14
	VMULPS  Y9, Y13, Y15
	VADDPS  Y14, Y3, Y3
	VADDPS  Y15, Y7, Y7
	ADDQ $32, AX
	CMPQ AX, R10
	JLT  pairLoop

	VBROADCASTSS 0(R11), Y8
	VBROADCASTSS 4(R11), Y9
	VBROADCASTSS 8(R11), Y10
	VBROADCASTSS 12(R11), Y11
	VMULPS  Y8, Y0, Y0
	VMULPS  Y9, Y1, Y1
	VMULPS  Y10, Y2, Y2
	VMULPS  Y11, Y3, Y3
	VMULPS  Y8, Y4, Y4
	VMULPS  Y9, Y5, Y5
	VMULPS  Y10, Y6, Y6
	VMULPS  Y11, Y7, Y7
	VADDPS  0(R12), Y0, Y0
	VADDPS  32(R12), Y1, Y1
	VADDPS  64(R12), Y2, Y2
	VADDPS  96(R12), Y3, Y3
	VADDPS  128(R12), Y4, Y4
	VADDPS  160(R12), Y5, Y5
	VADDPS  192(R12), Y6, Y6
	VADDPS  224(R12), Y7, Y7
	VMOVUPS Y0, 0(R12)
	VMOVUPS Y1, 32(R12)
	VMOVUPS Y2, 64(R12)
	VMOVUPS Y3, 96(R12)
	VMOVUPS Y4, 128(R12)
	VMOVUPS Y5, 160(R12)
	VMOVUPS Y6, 192(R12)
	VMOVUPS Y7, 224(R12)
	ADDQ $256, R12
	LEAQ (DI)(R8*2), DI
	SUBQ $2, R9
	JMP  pair

single:
	TESTQ R9, R9
	JZ   done
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	XORQ AX, AX

singleLoop:
	VMOVUPS (DI)(AX*1), Y8
	VMULPS  (SI)(AX*1), Y8, Y4
	VMULPS  512(SI)(AX*1), Y8, Y5
	VMULPS  1024(SI)(AX*1), Y8, Y6
	VMULPS  1536(SI)(AX*1), Y8, Y7
	VADDPS  Y4, Y0, Y0
	VADDPS  Y5, Y1, Y1
	VADDPS  Y6, Y2, Y2
	VADDPS  Y7, Y3, Y3
	ADDQ $32, AX
	CMPQ AX, R10
	JLT  singleLoop

	VBROADCASTSS 0(R11), Y8
	VBROADCASTSS 4(R11), Y9
	VBROADCASTSS 8(R11), Y10
	VBROADCASTSS 12(R11), Y11
	VMULPS  Y8, Y0, Y0
	VMULPS  Y9, Y1, Y1
	VMULPS  Y10, Y2, Y2
	VMULPS  Y11, Y3, Y3
	VADDPS  0(R12), Y0, Y0
	VADDPS  32(R12), Y1, Y1
	VADDPS  64(R12), Y2, Y2
	VADDPS  96(R12), Y3, Y3
	VMOVUPS Y0, 0(R12)
	VMOVUPS Y1, 32(R12)
	VMOVUPS Y2, 64(R12)
	VMOVUPS Y3, 96(R12)

done:
	VZEROUPPER
	RET

// func dotAVX2(x, y *float32, n int, lanes *[8]float32)
TEXT ·dotAVX2(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ n+16(FP), CX
	MOVQ lanes+24(FP), DX
	SHLQ $2, CX
	VXORPS Y0, Y0, Y0
	XORQ AX, AX

dotLoop:
	VMOVUPS (SI)(AX*1), Y1
	VMULPS  (DI)(AX*1), Y1, Y1
	VADDPS  Y1, Y0, Y0
	ADDQ $32, AX
	CMPQ AX, CX
	JLT  dotLoop
	VMOVUPS Y0, (DX)
	VZEROUPPER
	RET

// func addScaledAVX2(y, x *float32, n int, a float32)
TEXT ·addScaledAVX2(SB), NOSPLIT, $0-28
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS a+24(FP), Y0
	SHLQ $2, CX
	XORQ AX, AX

addLoop:
	VMULPS  (SI)(AX*1), Y0, Y1
	VADDPS  (DI)(AX*1), Y1, Y1
	VMOVUPS Y1, (DI)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT  addLoop
	VZEROUPPER
	RET

// func decodeBF16AVX2(dst *float32, src *byte, n int)
TEXT ·decodeBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	XORQ AX, AX

bf16Loop:
	VPMOVZXWD (SI)(AX*2), Y0
	VPSLLD  $16, Y0, Y0
	VMOVDQU Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  bf16Loop
	VZEROUPPER
	RET

// func decodeE4M3AVX2(dst *float32, src *byte, n int)
// Magnitudes of 8 and more are moved to float32's exponent and rebiased by 120;
// smaller ones are magnitude * 2^-9.
TEXT ·decodeE4M3AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL $127, AX
	VMOVD AX, X8
	VPBROADCASTD X8, Y8
	MOVL $0x3C000000, AX // 120 << 23
	VMOVD AX, X9
	VPBROADCASTD X9, Y9
	MOVL $0x3B000000, AX // 2^-9
	VMOVD AX, X10
	VPBROADCASTD X10, Y10
	MOVL $8, AX
	VMOVD AX, X11
	VPBROADCASTD X11, Y11
	XORQ AX, AX

e4m3Loop:
	VPMOVZXBD (SI)(AX*1), Y0
	VPAND   Y8, Y0, Y1         // magnitude
	VPSRLD  $7, Y0, Y0
	VPSLLD  $31, Y0, Y0        // sign
	VPSLLD  $20, Y1, Y2
	VPADDD  Y9, Y2, Y2         // normal
	VCVTDQ2PS Y1, Y3
	VMULPS  Y10, Y3, Y3        // subnormal
	VPCMPGTD Y1, Y11, Y4       // 8 > magnitude
	VBLENDVPS Y4, Y3, Y2, Y2
	VPOR    Y0, Y2, Y2
	VMOVDQU Y2, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  e4m3Loop
	VZEROUPPER
	RET

DATA shifts<>+0(SB)/4, $0
DATA shifts<>+4(SB)/4, $2
DATA shifts<>+8(SB)/4, $4
DATA shifts<>+12(SB)/4, $6
DATA shifts<>+16(SB)/4, $8
DATA shifts<>+20(SB)/4, $10
DATA shifts<>+24(SB)/4, $12
DATA shifts<>+28(SB)/4, $14
DATA shifts<>+32(SB)/4, $16
DATA shifts<>+36(SB)/4, $18
DATA shifts<>+40(SB)/4, $20
DATA shifts<>+44(SB)/4, $22
DATA shifts<>+48(SB)/4, $24
DATA shifts<>+52(SB)/4, $26
DATA shifts<>+56(SB)/4, $28
DATA shifts<>+60(SB)/4, $30
GLOBL shifts<>(SB), RODATA|NOPTR, $64

// Values of the codes 0 to 3, twice: a lane's index is a code and the lowest
// bit of the next. Code 3 does not occur.
DATA values<>+0(SB)/4, $0xBF800000
DATA values<>+4(SB)/4, $0
DATA values<>+8(SB)/4, $0x3F800000
DATA values<>+12(SB)/4, $0x40000000
DATA values<>+16(SB)/4, $0xBF800000
DATA values<>+20(SB)/4, $0
DATA values<>+24(SB)/4, $0x3F800000
DATA values<>+28(SB)/4, $0x40000000
GLOBL values<>(SB), RODATA|NOPTR, $32

// func decodePackedAVX2(dst *float32, src *byte, n int)
// Sixteen codes from four bytes: each lane shifts its own code down and looks
// its value up.
TEXT ·decodePackedAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVDQU shifts<>+0(SB), Y8
	VMOVDQU shifts<>+32(SB), Y9
	VMOVUPS values<>(SB), Y10
	XORQ AX, AX

packedLoop:
	VPBROADCASTD (SI), Y0
	VPSRLVD Y8, Y0, Y1
	VPSRLVD Y9, Y0, Y2
	VPERMPS Y10, Y1, Y1
	VPERMPS Y10, Y2, Y2
	VMOVUPS Y1, (DI)(AX*4)
	VMOVUPS Y2, 32(DI)(AX*4)
	ADDQ $4, SI
	ADDQ $16, AX
	CMPQ AX, CX
	JLT  packedLoop
	VZEROUPPER
	RET

// func packedProductAVX2(codes *byte, stride int, x *float32, n int, scales, lanes *float32)
// Four outputs (rows of codes stride bytes apart) for one row of x.
TEXT ·packedProductAVX2(SB), NOSPLIT, $0-48
	MOVQ codes+0(FP), SI
	MOVQ stride+8(FP), R8
	MOVQ x+16(FP), DI
	MOVQ n+24(FP), R10
	MOVQ scales+32(FP), R11
	MOVQ lanes+40(FP), R12
	LEAQ (SI)(R8*1), R13
	LEAQ (SI)(R8*2), R9
	LEAQ (R13)(R8*2), DX
	VMOVDQU shifts<>+0(SB), Y13
	VMOVDQU shifts<>+32(SB), Y14
	VMOVUPS values<>(SB), Y15
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	XORQ AX, AX // bytes of codes: x advances by 16 times as many

packedProductLoop:
	VMOVUPS (DI), Y4
	VMOVUPS 32(DI), Y5
	VPBROADCASTD (SI)(AX*1), Y6
	VPBROADCASTD (R13)(AX*1), Y7
	VPBROADCASTD (R9)(AX*1), Y8
	VPBROADCASTD (DX)(AX*1), Y9
	VPSRLVD Y13, Y6, Y10
	VPSRLVD Y13, Y7, Y11
	VPERMPS Y15, Y10, Y10
	VPERMPS Y15, Y11, Y11
	VMULPS  Y4, Y10, Y10
	VMULPS  Y4, Y11, Y11
	VADDPS  Y10, Y0, Y0
	VADDPS  Y11, Y1, Y1
	VPSRLVD Y13, Y8, Y10
	VPSRLVD Y13, Y9, Y11
	VPERMPS Y15, Y10, Y10
	VPERMPS Y15, Y11, Y11
	VMULPS  Y4, Y10, Y10
	VMULPS  Y4, Y11, Y11
	VADDPS  Y10, Y2, Y2
	VADDPS  Y11, Y3, Y3
	VPSRLVD Y14, Y6, Y10
	VPSRLVD Y14, Y7, Y11
	VPERMPS Y15, Y10, Y10
	VPERMPS Y15, Y11, Y11
	VMULPS  Y5, Y10, Y10
	VMULPS  Y5, Y11, Y11
	VADDPS  Y10, Y0, Y0
	VADDPS  Y11, Y1, Y1
	VPSRLVD Y14, Y8, Y10
	VPSRLVD Y14, Y9, Y11
	VPERMPS Y15, Y10, Y10
	VPERMPS Y15, Y11, Y11
	VMULPS  Y5, Y10, Y10
	VMULPS  Y5, Y11, Y11
	VADDPS  Y10, Y2, Y2
	VADDPS  Y11, Y3, Y3
	ADDQ $64, DI
	ADDQ $4, AX
	SUBQ $16, R10
	JG   packedProductLoop

	VBROADCASTSS 0(R11), Y8
	VBROADCASTSS 4(R11), Y9
	VBROADCASTSS 8(R11), Y10
	VBROADCASTSS 12(R11), Y11
	VMULPS  Y8, Y0, Y0
	VMULPS  Y9, Y1, Y1
	VMULPS  Y10, Y2, Y2
	VMULPS  Y11, Y3, Y3
	VADDPS  0(R12), Y0, Y0
	VADDPS  32(R12), Y1, Y1
	VADDPS  64(R12), Y2, Y2
	VADDPS  96(R12), Y3, Y3
	VMOVUPS Y0, 0(R12)
	VMOVUPS Y1, 32(R12)
	VMOVUPS Y2, 64(R12)
	VMOVUPS Y3, 96(R12)
	VZEROUPPER
	RET

// Constants of exp32, one a lane.
DATA exponential<>+0(SB)/4, $0xC2AE0000 // low
DATA exponential<>+4(SB)/4, $0xC2AE0000
DATA exponential<>+8(SB)/4, $0xC2AE0000
DATA exponential<>+12(SB)/4, $0xC2AE0000
DATA exponential<>+16(SB)/4, $0xC2AE0000
DATA exponential<>+20(SB)/4, $0xC2AE0000
DATA exponential<>+24(SB)/4, $0xC2AE0000
DATA exponential<>+28(SB)/4, $0xC2AE0000
DATA exponential<>+32(SB)/4, $0x42B00000 // high
DATA exponential<>+36(SB)/4, $0x42B00000
DATA exponential<>+40(SB)/4, $0x42B00000
DATA exponential<>+44(SB)/4, $0x42B00000
DATA exponential<>+48(SB)/4, $0x42B00000
DATA exponential<>+52(SB)/4, $0x42B00000
DATA exponential<>+56(SB)/4, $0x42B00000
DATA exponential<>+60(SB)/4, $0x42B00000
DATA exponential<>+64(SB)/4, $0x3FB8AA3B // log2e
DATA exponential<>+68(SB)/4, $0x3FB8AA3B
DATA exponential<>+72(SB)/4, $0x3FB8AA3B
DATA exponential<>+76(SB)/4, $0x3FB8AA3B
DATA exponential<>+80(SB)/4, $0x3FB8AA3B
DATA exponential<>+84(SB)/4, $0x3FB8AA3B
DATA exponential<>+88(SB)/4, $0x3FB8AA3B
DATA exponential<>+92(SB)/4, $0x3FB8AA3B
DATA exponential<>+96(SB)/4, $0x3F318000 // ln2High
DATA exponential<>+100(SB)/4, $0x3F318000
DATA exponential<>+104(SB)/4, $0x3F318000
DATA exponential<>+108(SB)/4, $0x3F318000
DATA exponential<>+112(SB)/4, $0x3F318000
DATA exponential<>+116(SB)/4, $0x3F318000
DATA exponential<>+120(SB)/4, $0x3F318000
DATA exponential<>+124(SB)/4, $0x3F318000
DATA exponential<>+128(SB)/4, $0xB95E8083 // ln2Low
DATA exponential<>+132(SB)/4, $0xB95E8083
DATA exponential<>+136(SB)/4, $0xB95E8083
DATA exponential<>+140(SB)/4, $0xB95E8083
DATA exponential<>+144(SB)/4, $0xB95E8083
DATA exponential<>+148(SB)/4, $0xB95E8083
DATA exponential<>+152(SB)/4, $0xB95E8083
DATA exponential<>+156(SB)/4, $0xB95E8083
DATA exponential<>+160(SB)/4, $0x4B400000 // round
DATA exponential<>+164(SB)/4, $0x4B400000
DATA exponential<>+168(SB)/4, $0x4B400000
DATA exponential<>+172(SB)/4, $0x4B400000
DATA exponential<>+176(SB)/4, $0x4B400000
DATA exponential<>+180(SB)/4, $0x4B400000
DATA exponential<>+184(SB)/4, $0x4B400000
DATA exponential<>+188(SB)/4, $0x4B400000
DATA exponential<>+192(SB)/4, $0x39506967 // e7
DATA exponential<>+196(SB)/4, $0x39506967
DATA exponential<>+200(SB)/4, $0x39506967
DATA exponential<>+204(SB)/4, $0x39506967
DATA exponential<>+208(SB)/4, $0x39506967
DATA exponential<>+212(SB)/4, $0x39506967
DATA exponential<>+216(SB)/4, $0x39506967
DATA exponential<>+220(SB)/4, $0x39506967
DATA exponential<>+224(SB)/4, $0x3AB743CE // e6
DATA exponential<>+228(SB)/4, $0x3AB743CE
DATA exponential<>+232(SB)/4, $0x3AB743CE
DATA exponential<>+236(SB)/4, $0x3AB743CE
DATA exponential<>+240(SB)/4, $0x3AB743CE
DATA exponential<>+244(SB)/4, $0x3AB743CE
DATA exponential<>+248(SB)/4, $0x3AB743CE
DATA exponential<>+252(SB)/4, $0x3AB743CE
DATA exponential<>+256(SB)/4, $0x3C088908 // e5
DATA exponential<>+260(SB)/4, $0x3C088908
DATA exponential<>+264(SB)/4, $0x3C088908
DATA exponential<>+268(SB)/4, $0x3C088908
DATA exponential<>+272(SB)/4, $0x3C088908
DATA exponential<>+276(SB)/4, $0x3C088908
DATA exponential<>+280(SB)/4, $0x3C088908
DATA exponential<>+284(SB)/4, $0x3C088908
DATA exponential<>+288(SB)/4, $0x3D2AA9C1 // e4
DATA exponential<>+292(SB)/4, $0x3D2AA9C1
DATA exponential<>+296(SB)/4, $0x3D2AA9C1
DATA exponential<>+300(SB)/4, $0x3D2AA9C1
DATA exponential<>+304(SB)/4, $0x3D2AA9C1
DATA exponential<>+308(SB)/4, $0x3D2AA9C1
DATA exponential<>+312(SB)/4, $0x3D2AA9C1
DATA exponential<>+316(SB)/4, $0x3D2AA9C1
DATA exponential<>+320(SB)/4, $0x3E2AAAAA // e3
DATA exponential<>+324(SB)/4, $0x3E2AAAAA
DATA exponential<>+328(SB)/4, $0x3E2AAAAA
DATA exponential<>+332(SB)/4, $0x3E2AAAAA
DATA exponential<>+336(SB)/4, $0x3E2AAAAA
DATA exponential<>+340(SB)/4, $0x3E2AAAAA
DATA exponential<>+344(SB)/4, $0x3E2AAAAA
DATA exponential<>+348(SB)/4, $0x3E2AAAAA
DATA exponential<>+352(SB)/4, $0x3F000000 // e2
DATA exponential<>+356(SB)/4, $0x3F000000
DATA exponential<>+360(SB)/4, $0x3F000000
DATA exponential<>+364(SB)/4, $0x3F000000
DATA exponential<>+368(SB)/4, $0x3F000000
DATA exponential<>+372(SB)/4, $0x3F000000
DATA exponential<>+376(SB)/4, $0x3F000000
DATA exponential<>+380(SB)/4, $0x3F000000
DATA exponential<>+384(SB)/4, $0x3F800000 // one
DATA exponential<>+388(SB)/4, $0x3F800000
DATA exponential<>+392(SB)/4, $0x3F800000
DATA exponential<>+396(SB)/4, $0x3F800000
DATA exponential<>+400(SB)/4, $0x3F800000
DATA exponential<>+404(SB)/4, $0x3F800000
DATA exponential<>+408(SB)/4, $0x3F800000
DATA exponential<>+412(SB)/4, $0x3F800000
GLOBL exponential<>(SB), RODATA|NOPTR, $416

// EXP sets Y0 = exp32(Y0), with the operations of the Go version in their
// order; Y1 to Y4 are overwritten, Y15 is 127 in each lane.
#define EXP \
	VMOVUPS exponential<>+0(SB), Y1; \
	VMAXPS  Y0, Y1, Y0; \
	VMOVUPS exponential<>+32(SB), Y1; \
	VMINPS  Y0, Y1, Y0; \
	VMULPS  exponential<>+64(SB), Y0, Y1; \
	VMOVUPS exponential<>+160(SB), Y2; \
	VADDPS  Y2, Y1, Y1; \
	VSUBPS  Y2, Y1, Y1; \
	VMULPS  exponential<>+96(SB), Y1, Y2; \
	VSUBPS  Y2, Y0, Y0; \
	VMULPS  exponential<>+128(SB), Y1, Y2; \
	VSUBPS  Y2, Y0, Y0; \
	VMULPS  exponential<>+192(SB), Y0, Y3; \
	VADDPS  exponential<>+224(SB), Y3, Y3; \
	VMULPS  Y0, Y3, Y3; \
	VADDPS  exponential<>+256(SB), Y3, Y3; \
	VMULPS  Y0, Y3, Y3; \
	VADDPS  exponential<>+288(SB), Y3, Y3; \
	VMULPS  Y0, Y3, Y3; \
	VADDPS  exponential<>+320(SB), Y3, Y3; \
	VMULPS  Y0, Y3, Y3; \
	VADDPS  exponential<>+352(SB), Y3, Y3; \
	VMULPS  Y0, Y0, Y4; \
	VMULPS  Y4, Y3, Y3; \
	VADDPS  Y0, Y3, Y3; \
	VADDPS  exponential<>+384(SB), Y3, Y3; \
	VCVTTPS2DQ Y1, Y1; \
	VPADDD  Y15, Y1, Y1; \
	VPSLLD  $23, Y1, Y1; \
	VMULPS  Y1, Y3, Y0

// func exponentialsAVX2(x *float32, n int, offset float32)
TEXT ·exponentialsAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	VBROADCASTSS offset+16(FP), Y5
	MOVL $127, AX
	VMOVD AX, X15
	VPBROADCASTD X15, Y15
	XORQ AX, AX

exponentialsLoop:
	VMOVUPS (DI)(AX*4), Y0
	VSUBPS  Y5, Y0, Y0
	EXP
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  exponentialsLoop
	VZEROUPPER
	RET

// func siluAVX2(dst, src *float32, n int)
TEXT ·siluAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL $127, AX
	VMOVD AX, X15
	VPBROADCASTD X15, Y15
	VPCMPEQD Y6, Y6, Y6
	VPSLLD  $31, Y6, Y6 // sign bits
	XORQ AX, AX

siluLoop:
	VMOVUPS (SI)(AX*4), Y5
	VXORPS  Y6, Y5, Y0
	EXP
	VADDPS  exponential<>+384(SB), Y0, Y0
	VDIVPS  Y0, Y5, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  siluLoop
	VZEROUPPER
	RET
