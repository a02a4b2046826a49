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

var frontendPathSegment = "/" + strings.ToLower(frontends) + "/"

func (e *Emulator) withAlias(id resourceID, root fields) fields {
	props := propertyFields(root)
	if stringField(props, "alias") != "" {
		return root
	}
	return withField(root, "properties", withField(props, "alias", fmt.Sprintf("%s.%s.%s.azure.privatelinkservice", id.name, e.newGUID(), normalizedLocation(root))))
}

func (r resourceID) networkInterfaceID(guid string) string {
	return "/subscriptions/" + r.subscription + "/resourceGroups/" + r.group + "/providers/" + network + "/networkInterfaces/" + r.name + ".nic." + guid
}

func (e *Emulator) findFrontend(key string) (*aggregate, fields) {
	balancer, name, _ := strings.Cut(key, frontendPathSegment)
	agg := e.aggregates[balancer]
	if agg == nil || agg.id.root != loadBalancerKind {
		return nil, nil
	}
	list := objectList(propertyFields(agg.body), frontends)
	if i := indexByName(list, name); i >= 0 {
		return agg, list[i]
	}
	return nil, nil
}

// Connect requests a connection to a private link service and returns its ID. It is Approved if
// auto-approved, else Pending until a PUT approves or rejects it. The endpoint is not modeled.
func (e *Emulator) Connect(service, endpoint string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finishDue(time.Now())
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
	case !isVisibleTo(agg, parts[2]):
		return "", fmt.Errorf("%s is not visible for subscription %s", service, parts[2])
	}
	state := fields{"status": "Pending", "description": "", "actionsRequired": "None"}
	if listsSubscription(agg.body, "autoApproval", parts[2]) {
		state["status"], state["description"] = "Approved", "Auto Approved"
	}
	child := agg.id.withChild(connectionKind, path.Base(endpoint)+"."+e.newGUID())
	before := agg.body
	agg.body = withChildBody(agg.body, child, fields{"name": child.childName, "properties": fields{
		"privateEndpoint": fields{"id": endpoint}, "privateLinkServiceConnectionState": state,
		"linkIdentifier": fmt.Sprint(536870912 + len(objectList(propertyFields(before), connections))),
	}})
	e.revision++
	e.renewEtag(agg)
	return child.String(), nil
}

func isVisibleTo(agg *aggregate, subscription string) bool {
	return strings.EqualFold(agg.id.subscription, subscription) || listsSubscription(agg.body, "visibility", subscription)
}

func listsSubscription(body fields, list, subscription string) bool {
	subscriptions, _ := objectField(propertyFields(body), list)["subscriptions"].([]any)
	return slices.ContainsFunc(subscriptions, func(v any) bool {
		id, _ := v.(string)
		return id == "*" || strings.EqualFold(id, subscription)
	})
}

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
		replyBadRequest(w, fmt.Errorf("connections: %w", err))
		return
	}
	replyOK(w, fields{"connection": connection})
}
