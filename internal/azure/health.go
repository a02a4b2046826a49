// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"

	"weir.dev/weir/internal/lb"
)

const rulesChild = "loadBalancingRules"

var ruleNameRule = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,78}[0-9A-Za-z_])?$`)

// ReadHealth returns what the probe of a load balancing rule reports of the members. It changes nothing, but Azure counts it as a
// write. It fails for a rule without a probe. Members that are powered off are missing.
func (c *Client) ReadHealth(ctx context.Context, id lb.LoadBalancerID, rule string) ([]lb.MemberHealth, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if !ruleNameRule.MatchString(rule) {
		return nil, rejectRequest(codeInvalidID, fmt.Errorf("%q is no name of a load balancing rule", rule))
	}
	t := loadBalancerTarget(id)
	t.child = rulesChild + "/" + rule
	a, err := c.startWrite(ctx, request{call: &call{op: opHealth, target: t}, method: http.MethodPost, path: t.armID() + "/health"})
	if err != nil {
		return nil, err
	}
	poll := a.call.newPoll()
	result, err := waitForWrite(withCall(ctx, poll), poll, a.poller, a.firstResponse, nil)
	if err != nil {
		return nil, newFault(ctx, poll, err)
	}
	members, err := decodeHealth(result)
	if err != nil {
		return nil, unexpectedResponse(t)
	}
	return members, nil
}

func decodeHealth(text []byte) ([]lb.MemberHealth, error) {
	var body struct {
		Members *[]struct {
			IP     string `json:"ipAddress"`
			State  string `json:"state"`
			Reason string `json:"reason"`
		} `json:"loadBalancerBackendAddresses"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	if body.Members == nil {
		return nil, errors.New("no members")
	}
	health := []lb.MemberHealth{}
	for _, m := range *body.Members {
		ip, err := netip.ParseAddr(m.IP)
		if err != nil {
			continue // of a network interface without an address yet
		}
		if !codeRule.MatchString(m.Reason) {
			m.Reason = ""
		}
		health = append(health, lb.MemberHealth{IP: ip, Up: m.State == "Up", Reason: m.Reason})
	}
	return health, nil
}
