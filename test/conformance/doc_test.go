// SPDX-License-Identifier: Apache-2.0

// Package conformance_test runs the conformance suite of Gateway API against the built program, a real kube-apiserver
// and the emulated Azure with its data plane. It is a separate module, so that Weir does not depend on the suite.
package conformance_test
