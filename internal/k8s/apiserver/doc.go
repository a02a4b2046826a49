// SPDX-License-Identifier: Apache-2.0

// Package apiserver handles the connection to the API server: lost connections, broken watches,
// error classification and access to metrics.
package apiserver

// FieldOwner is Weir's field manager and event source.
const FieldOwner = "weir"
