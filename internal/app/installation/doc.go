// SPDX-License-Identifier: Apache-2.0

// Package installation finds what keeps an installed Weir from running. It reads with the caller's permissions and never
// returns the content of a Secret.
//
//	read.go        Deployment, pods and their warnings
//	deployment.go  replicas, and the flags of the controller
//	pods.go        why a pod is not ready
//	secret.go      Secrets that the pods mount, and their keys
package installation
