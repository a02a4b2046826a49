// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/azure"
)

// put is an Azure write.
type put struct {
	at    time.Time
	holds []string
}

// pool returns the pool's addresses in Azure, sorted.
func (s *stage) pool() []string {
	raw, _ := s.cloud.Get(network + "/loadBalancers/" + s.ns + "/backendAddressPools/web")
	return addressesIn(raw)
}

func addressesIn(raw []byte) []string {
	var body struct {
		Properties struct {
			LoadBalancerBackendAddresses []struct{ Properties struct{ IPAddress string } }
		}
	}
	_ = json.Unmarshal(raw, &body) // invalid JSON: empty
	ips := []string{}
	for _, a := range body.Properties.LoadBalancerBackendAddresses {
		ips = append(ips, a.Properties.IPAddress)
	}
	slices.Sort(ips)
	return ips
}

// holding returns the addresses of these nodes and the foreign one.
func (s *stage) holding(on ...int) []string {
	ips := []string{"10.255.0.9"}
	for _, n := range on {
		ips = append(ips, s.ip(n))
	}
	slices.Sort(ips)
	return ips
}

// Do sends a request to the cloud and checks that a write was recorded.
func (s *stage) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(strings.NewReader(string(body)))
		recorded, holds := s.status().WrittenAddresses, addressesIn(body)
		s.mu.Lock()
		s.puts = append(s.puts, put{time.Now(), holds})
		for _, ip := range holds {
			if strings.HasPrefix(ip, "10."+s.no+".") && !slices.Contains(recorded, ip) {
				s.unrecorded = append(s.unrecorded, fmt.Sprintf("%s was written, recorded were %v", ip, recorded))
			}
		}
		conflict := s.conflicts > 0
		s.conflicts--
		s.mu.Unlock()
		if conflict {
			const body = `{"error":{"code":"AnotherOperationInProgress","message":"Not now."}}`
			return &http.Response{
				StatusCode: http.StatusConflict, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
			}, nil
		}
	}
	res, err := s.cloud.Transport().Do(req)
	if req.Method == http.MethodPut {
		s.mu.Lock()
		then := s.afterWrite
		s.afterWrite = nil
		s.mu.Unlock()
		if then != nil {
			then()
		}
	}
	return res, err
}

func (s *stage) afterNextWrite(then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.afterWrite = then
}

// conflictNextWrites answers the next Azure writes with a conflict.
func (s *stage) conflictNextWrites(times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conflicts = times
}

// azure returns a client for the stage's cloud.
func (s *stage) azure() (*azure.Client, error) {
	endpoint, token, err := azure.LocalEndpoint("http://127.0.0.1:1")
	if err != nil {
		return nil, err
	}
	return azure.New(azure.Options{
		Endpoint: endpoint, Credential: token, Transport: s, UserAgent: "weir/test",
		VirtualNetworkID: vnetID, Retry: azure.Retry{MaxRetries: -1},
	})
}
