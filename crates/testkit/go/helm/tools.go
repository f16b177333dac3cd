//go:build tools

// Package helm pins the program that renders and checks our chart: go.mod and go.sum fix every module that goes into
// it, and this import keeps them in go.mod.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
