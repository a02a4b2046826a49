// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

type poolBody struct {
	Properties struct {
		ProvisioningState string `json:"provisioningState"`
		Addresses         []struct {
			Name       string `json:"name"`
			Properties struct {
				IPAddress  string `json:"ipAddress"`
				AdminState string `json:"adminState"`
			} `json:"properties"`
		} `json:"loadBalancerBackendAddresses"`
	} `json:"properties"`
}

// readPool decodes a pool; invalid input gives an empty pool.
func readPool(raw []byte) poolBody {
	var body poolBody
	if json.Unmarshal(raw, &body) != nil {
		return poolBody{}
	}
	return body
}

// poolEntries returns the addresses in a pool's body, or none if it is not a pool.
func poolEntries(raw []byte) []lb.Address { return readPool(raw).decodeAddresses() }

func (body poolBody) decodeAddresses() []lb.Address {
	var addresses []lb.Address
	for _, a := range body.Properties.Addresses {
		if ip, err := netip.ParseAddr(a.Properties.IPAddress); err == nil {
			addresses = append(addresses, lb.Address{Name: a.Name, IP: ip, AdminState: a.Properties.AdminState})
		}
	}
	return addresses
}

func poolAddresses(raw []byte) []netip.Addr {
	var ips []netip.Addr
	for _, a := range poolEntries(raw) {
		ips = append(ips, a.IP)
	}
	return ips
}

func countDown(raw []byte) int {
	n := 0
	for _, a := range poolEntries(raw) {
		if a.AdminState == lb.Down {
			n++
		}
	}
	return n
}

// loadBalancerAddresses returns the addresses of all pools in a load balancer's body.
func loadBalancerAddresses(raw []byte) (ips []netip.Addr, down int) {
	var body struct {
		Properties struct {
			Pools []json.RawMessage `json:"backendAddressPools"`
		} `json:"properties"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return nil, 0
	}
	for _, pool := range body.Properties.Pools {
		ips, down = append(ips, poolAddresses(pool)...), down+countDown(pool)
	}
	return ips, down
}

// readBody returns a request's body without consuming it.
func readBody(req *http.Request) []byte {
	if req.Body == nil {
		return nil
	}
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(raw))
	return raw
}

// errorCodes returns the error codes of a response without consuming it.
func errorCodes(resp *http.Response) []string {
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Details []struct {
				Code string `json:"code"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return nil
	}
	codes := []string{body.Error.Code}
	for _, d := range body.Error.Details {
		codes = append(codes, d.Code)
	}
	return codes
}

// operationID returns the operation id in a polling URL.
func operationID(path string) (string, bool) {
	parts := strings.Split(path, "/")
	i := slices.IndexFunc(parts, func(p string) bool { return p == "operations" || p == "operationResults" })
	if i < 0 || i+1 >= len(parts) {
		return "", false
	}
	return parts[i+1], true
}
