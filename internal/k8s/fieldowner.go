// SPDX-License-Identifier: Apache-2.0

package k8s

// FieldOwner is Weir's field manager and event source.
const FieldOwner = "weir"
