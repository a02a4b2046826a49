// SPDX-License-Identifier: Apache-2.0

// Package charts renders Helm charts with Helm's library. Charts are programs written by tenants,
// so each is rendered in a child process without environment, files or connections, and with
// limited memory and time.
package charts
