//go:build tools

// Package controlplane pins the programs of the test control plane: go.mod and go.sum fix every module
// that goes into them, and these imports keep the modules in go.mod. To move to another Kubernetes
// release, change its version in go.mod (the replace lines too) and in KUBERNETES_VERSION.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
