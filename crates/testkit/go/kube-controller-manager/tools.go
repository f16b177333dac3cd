//go:build tools

// Package controllermanager pins kube-controller-manager, in a module of its own: it needs modules that the control
// plane does not, and with those the control plane would be built again. To move to another Kubernetes release, change
// its version in go.mod (the replace lines too), as in control-plane-build.
package controllermanager

import _ "k8s.io/kubernetes/cmd/kube-controller-manager"
