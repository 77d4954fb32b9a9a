slipway = 1

bundle "abacus-drafter" {
  profile = "drafter"
}

weights "language" {
  from = "."
}

runtime "native" {
  device = "cpu"
}

serve {
  model = "abacus-drafter"
}
