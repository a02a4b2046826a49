// SPDX-License-Identifier: Apache-2.0

package kube

import "k8s.io/client-go/rest"

// ClientConfig completes how the API server is reached, and returns its argument. It
// names us to the server, and leaves it to that server's priority and fairness to
// limit us: client-go's own limit of five requests a second would hold up the record
// that every write has to wait for. What client-go asks again, and how often, stays
// as it comes: docs/reference/retries.md has it measured.
func ClientConfig(cfg *rest.Config, userAgent string) *rest.Config {
	cfg.QPS = -1
	return rest.AddUserAgent(cfg, userAgent)
}
