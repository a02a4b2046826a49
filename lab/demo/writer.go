// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// secondWriterID marks the second writer's calls in the emulator's log.
const secondWriterID = "second-writer"

// secondWriter writes the same pools as Weir, like Terraform or az: it reads a pool, edits the
// body, and writes it with If-Match, which changes the etags of the whole load balancer.
type secondWriter struct {
	endpoint string
	client   *http.Client
}

func newSecondWriter(endpoint string) *secondWriter {
	return &secondWriter{
		endpoint: strings.TrimSuffix(endpoint, "/"),
		client:   &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// resourceURL returns the URL of a pool, or of the load balancer for an empty name.
func (w *secondWriter) resourceURL(pool string) string {
	id := w.endpoint + provider + "loadBalancers/" + loadBalancer
	if pool != "" {
		id += "/backendAddressPools/" + pool
	}
	return id + "?api-version=2025-05-01"
}

// errConflict means that the pool changed between the second writer's GET and PUT.
var errConflict = errors.New("overtaken")

// addAddress adds an address to a pool and retries if overtaken.
func (w *secondWriter) addAddress(ctx context.Context, pool, name string, ip netip.Addr) error {
	for {
		err := w.tryAddAddress(ctx, pool, name, ip)
		if !errors.Is(err, errConflict) {
			return err
		}
		if err := sleepContext(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func (w *secondWriter) tryAddAddress(ctx context.Context, pool, name string, ip netip.Addr) error {
	body, err := w.sendRequest(ctx, http.MethodGet, pool, nil, "")
	if err != nil {
		return err
	}
	etag, _ := body["etag"].(string)
	removeReadOnly(body)
	addPoolAddress(body, name, ip)
	_, err = w.sendRequest(ctx, http.MethodPut, pool, body, etag)
	return err
}

// isBusy reports whether a write of the load balancer or a pool is in progress.
func (w *secondWriter) isBusy(ctx context.Context) (bool, error) {
	body, err := w.sendRequest(ctx, http.MethodGet, "", nil, "")
	if err != nil {
		return false, err
	}
	properties, _ := body["properties"].(object)
	return properties["provisioningState"] == "Updating", nil
}

// removeReadOnly removes read-only properties from a pool's body.
func removeReadOnly(body object) {
	for _, key := range []string{"id", "name", "etag", "type"} {
		delete(body, key)
	}
	of, _ := body["properties"].(object)
	for _, key := range []string{"provisioningState", "resourceGuid", "backendIPConfigurations", "inboundNatRules", "loadBalancingRules", "outboundRule", "outboundRules"} {
		delete(of, key)
	}
	entries, _ := of["loadBalancerBackendAddresses"].([]any)
	for _, entry := range entries {
		if entry, ok := entry.(object); ok {
			for _, key := range []string{"id", "etag", "type"} {
				delete(entry, key)
			}
			of, _ := entry["properties"].(object)
			delete(of, "provisioningState")
			delete(of, "inboundNatRulesPortMapping")
		}
	}
}

func addPoolAddress(body object, name string, ip netip.Addr) {
	of, _ := body["properties"].(object)
	if of == nil {
		of = object{}
		body["properties"] = of
	}
	entries, _ := of["loadBalancerBackendAddresses"].([]any)
	of["loadBalancerBackendAddresses"] = append(entries, object{"name": name, "properties": object{
		"ipAddress": ip.String(), "virtualNetwork": object{"id": provider + "virtualNetworks/" + network},
	}})
}

func (w *secondWriter) sendRequest(ctx context.Context, method, pool string, body object, ifMatch string) (object, error) {
	var payload bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&payload).Encode(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, w.resourceURL(pool), &payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+secondWriterID)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-ms-client-request-id", secondWriterID)
	if ifMatch != "" {
		req.Header.Set("If-Match", ifMatch)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the second writer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the second writer: %w", err)
	case resp.StatusCode == http.StatusPreconditionFailed || resp.StatusCode == http.StatusConflict:
		return nil, errConflict
	case resp.StatusCode >= 300:
		return nil, fmt.Errorf("the second writer: %s %s: %s", method, resp.Status, raw)
	}
	var answer object
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("the second writer: %w", err)
	}
	return answer, nil
}
