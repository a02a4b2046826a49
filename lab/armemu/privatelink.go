// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// inFrontends is what stands between the id of a load balancer, in lower case, and a frontend's name.
var inFrontends = "/" + strings.ToLower(frontends) + "/"

// aliased gives a private link service the name by which consumers ask for it.
func (e *Emulator) aliased(id resourceID, root fields) fields {
	props := properties(root)
	if text(props, "alias") != "" {
		return root
	}
	return with(root, "properties", with(props, "alias", fmt.Sprintf("%s.%s.%s.azure.privatelinkservice", id.name, e.guid(), location(root))))
}

// networkInterface is the id of the interface that Azure makes for a private link service. It is not
// modelled.
func (r resourceID) networkInterface(guid string) string {
	return "/subscriptions/" + r.subscription + "/resourceGroups/" + r.group + "/providers/" + network + "/networkInterfaces/" + r.name + ".nic." + guid
}

// frontendOf returns the load balancer of a frontend's id, in lower case, and the frontend; nil if
// there is none.
func (e *Emulator) frontendOf(key string) (*aggregate, fields) {
	balancer, name, _ := strings.Cut(key, inFrontends)
	agg := e.aggregates[balancer]
	if agg == nil || agg.id.root != loadBalancerKind {
		return nil, nil
	}
	list := objects(properties(agg.body), frontends)
	if i := indexByName(list, name); i >= 0 {
		return agg, list[i]
	}
	return nil, nil
}

// Connect has the owner of a private endpoint ask for a connection to a private link service, and
// returns the id of the connection. It is Approved if the endpoint's subscription is among those of the
// service's auto-approval, else Pending: somebody PUTs it to be Approved or Rejected. The endpoint
// itself is not modelled.
func (e *Emulator) Connect(service, endpoint string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settle(time.Now())
	id, err := parseID(service)
	if err != nil {
		return "", err
	}
	agg := e.aggregates[id.key()]
	parts := strings.Split(endpoint, "/")
	switch {
	case agg == nil || id.root != privateLinkServiceKind:
		return "", fmt.Errorf("%s is no private link service that is there", service)
	case agg.op != nil:
		return "", fmt.Errorf("%s is being written", service)
	case len(parts) != 9 || !strings.EqualFold(parts[7], "privateEndpoints"):
		return "", fmt.Errorf("private endpoint %q: want /subscriptions/…/resourceGroups/…/providers/%s/privateEndpoints/…", endpoint, network)
	case !seenBy(agg, parts[2]):
		return "", fmt.Errorf("%s is not visible for subscription %s", service, parts[2])
	}
	state := fields{"status": "Pending", "description": "", "actionsRequired": "None"}
	if subscriptions(agg.body, "autoApproval", parts[2]) {
		state["status"], state["description"] = "Approved", "Auto Approved"
	}
	child := agg.id.withChild(connectionKind, path.Base(endpoint)+"."+e.guid())
	before := agg.body
	agg.body = withChildBody(agg.body, child, fields{"name": child.childName, "properties": fields{
		"privateEndpoint": fields{"id": endpoint}, "privateLinkServiceConnectionState": state,
		"linkIdentifier": fmt.Sprint(536870912 + len(objects(properties(before), connections))),
	}})
	e.retag(agg)
	return child.String(), nil
}

// seenBy tells whether a subscription may ask for a connection. To the own one it is left by roles.
func seenBy(agg *aggregate, subscription string) bool {
	return strings.EqualFold(agg.id.subscription, subscription) || subscriptions(agg.body, "visibility", subscription)
}

// subscriptions tells whether one is in a list of a private link service.
func subscriptions(body fields, list, subscription string) bool {
	all, _ := object(properties(body), list)["subscriptions"].([]any)
	return slices.ContainsFunc(all, func(v any) bool {
		id, _ := v.(string)
		return id == "*" || strings.EqualFold(id, subscription)
	})
}

// adminConnect is Connect over HTTP.
func (e *Emulator) adminConnect(w http.ResponseWriter, req *http.Request) {
	var want struct {
		Service  string `json:"service"`
		Endpoint string `json:"endpoint"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<20))
	dec.DisallowUnknownFields()
	err := dec.Decode(&want)
	if err == nil && (want.Service == "" || want.Endpoint == "") {
		err = errors.New(`want {"service": …, "endpoint": …}, both ARM ids`)
	}
	var connection string
	if err == nil {
		connection, err = e.Connect(want.Service, want.Endpoint)
	}
	if err != nil {
		refuse(w, fmt.Errorf("connections: %w", err))
		return
	}
	reply200(w, fields{"connection": connection})
}
