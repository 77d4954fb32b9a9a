package kernels

import "math"

// dotGo is the inner product in lanes k mod 8, joined as in Linear.
func dotGo(x, y []float32) float32 {
	var lanes [8]float32
	n := len(x) &^ 7
	addBlock(&lanes, x[:n], y[:n], 1)
	for i := n; i < len(x); i++ {
		lanes[i&7] += float32(x[i] * y[i])
	}
	return sumLanes(&lanes)
}

// addScaledGo is y += a*x.
func addScaledGo(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += float32(a * x[i])
	}
}

func scale(y []float32, a float32) {
	for i := range y {
		y[i] *= a
	}
}

// Coefficients of exp32: ln 2 in two parts, and the polynomial of exp(r) on
// |r| <= ln(2)/2 that has the least relative error (Cephes, expf).
const (
	expLow, expHigh = -87.0, 88.0
	log2e           = 1.44269504088896341
	ln2High         = 0.693359375
	ln2Low          = -2.12194440054690583e-4
	roundToInteger  = 12582912 // 1.5 * 2^23: adding it leaves no fraction bits
	exp2            = 0.5
	exp3            = 1.6666665459e-1
	exp4            = 4.1665795894e-2
	exp5            = 8.3334519073e-3
	exp6            = 1.3981999507e-3
	exp7            = 1.9875691500e-4
)

// exp32 is exp(x) to about one unit in the last place. Below -87 and above 88 it
// stays at the value there, so that the result is normal and finite; NaN stays
// NaN.
func exp32(x float32) float32 {
	if x < expLow {
		x = expLow
	}
	if x > expHigh {
		x = expHigh
	}
	n := float32(float32(x*log2e)+roundToInteger) - roundToInteger
	r := x - float32(n*ln2High)
	r -= float32(n * ln2Low)
	y := float32(exp7)
	y = float32(y*r) + exp6
	y = float32(y*r) + exp5
	y = float32(y*r) + exp4
	y = float32(y*r) + exp3
	y = float32(y*r) + exp2
	y = float32(y*float32(r*r)) + r
	y++
	return float32(y * math.Float32frombits(uint32(int32(n)+127)<<23))
}

func sigmoid(x float32) float32 { return 1 / (1 + exp32(-x)) }

// exponentialsGo is x = exp(x - offset).
func exponentialsGo(x []float32, offset float32) {
	for i := range x {
		x[i] = exp32(x[i] - offset)
	}
}

// siluGo is dst = src / (1 + exp(-src)).
func siluGo(dst, src []float32) {
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = x / (1 + exp32(-x))
	}
}

// addProduct is y += w*x.
func addProduct(y, w, x []float32) {
	w, x = w[:len(y)], x[:len(y)]
	for i := range y {
		y[i] += float32(w[i] * x[i])
	}
}

// multiply is y *= x.
func multiply(y, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] *= x[i]
	}
}

// softplus is log(1+exp(x)), linear above 20.
func softplus(x float64) float64 {
	if x > 20 {
		return x
	}
	return math.Log1p(math.Exp(x))
}
