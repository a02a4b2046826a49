// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

type documentClient struct {
	armClients     armClients
	withoutIfMatch bool
	versions       versionCache
}

func (d *documentClient) getDocument(ctx context.Context, t target) (codec.Document, error) {
	return d.readVersion(ctx, t, d.resourceVersion(t))
}

func (d *documentClient) readVersion(ctx context.Context, t target, version string) (codec.Document, error) {
	c := &call{op: opGet, target: t}
	text, err := d.fetchText(withCall(ctx, c), t, version)
	if err != nil {
		return codec.Document{}, newFault(ctx, c, err)
	}
	return checkResource(t, codec.Document{Version: version, Text: text})
}

// fetchText returns compact text.
func (d *documentClient) fetchText(ctx context.Context, t target, version string) (json.RawMessage, error) {
	resp, err := d.sendRequest(ctx, http.MethodGet, t.armID(), version, nil) //nolint:bodyclose // the pipeline has read the body to its end
	if err != nil {
		return nil, err
	}
	payload, err := runtime.Payload(resp)
	if err != nil {
		return nil, err
	}
	if text, err := compactText(payload); err == nil {
		return text, nil
	}
	var text json.RawMessage
	return text, runtime.UnmarshalAsJSON(resp, &text) // names the error
}

// isPresent does not copy the value.
type isPresent bool

// UnmarshalJSON implements json.Unmarshaler.
func (p *isPresent) UnmarshalJSON(text []byte) error {
	*p = string(text) != "null"
	return nil
}

type resourceHeader struct {
	ID         *string   `json:"id"`
	Name       *string   `json:"name"`
	Properties isPresent `json:"properties"`
}

// checkDocument also compacts the text.
func checkDocument(t target, doc codec.Document) (codec.Document, error) {
	var err error
	if doc.Text, err = compactText(doc.Text); err != nil {
		return codec.Document{}, unexpectedResponse(t)
	}
	return checkResource(t, doc)
}

// checkResource rejects a response about another resource: treated as an empty one, it would cause data
// loss.
func checkResource(t target, doc codec.Document) (codec.Document, error) {
	var header resourceHeader
	if header.decode(doc.Text) != nil || !bool(header.Properties) || !isSameResource(t.armID(), header.ID, header.Name) {
		return codec.Document{}, unexpectedResponse(t)
	}
	return doc, nil
}

func (h *resourceHeader) decode(text []byte) error {
	if header, ok := codec.ScanHeader(text); ok {
		*h = resourceHeader{header.ID, header.Name, isPresent(header.HasProperties)}
		return nil
	}
	return json.Unmarshal(text, h)
}

// compactText returns valid JSON without spaces, or an error.
func compactText(text []byte) (json.RawMessage, error) {
	var compact bytes.Buffer
	compact.Grow(len(text))
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	if compact.Len() < len(text) {
		return bytes.Clone(compact.Bytes()), nil
	}
	return compact.Bytes(), nil
}

func decodeDocument[I, T any](t target, id I, doc codec.Document, convert func(I, codec.Document) (T, error)) (T, error) {
	value, err := convert(id, doc)
	if err != nil {
		var none T
		return none, unexpectedResponse(t)
	}
	return value, nil
}

// listDocuments rejects a list with an unexpected item, because missing items would be treated as deleted.
func (d *documentClient) listDocuments(ctx context.Context, list target) ([]codec.Document, error) {
	type page struct {
		Value []*json.RawMessage `json:"value"`
		Next  string             `json:"nextLink"`
	}
	if err := checkID(lb.LoadBalancerID{SubscriptionID: list.id.SubscriptionID, ResourceGroup: list.id.ResourceGroup, Name: "any"}); err != nil {
		return nil, err
	}
	version := d.resourceVersion(list)
	c := &call{op: opList, target: list}
	var found []codec.Document
	for pager := runtime.NewPager(runtime.PagingHandler[page]{
		More: func(p page) bool { return p.Next != "" },
		Fetcher: func(ctx context.Context, last *page) (p page, err error) {
			at := list.armID()
			if last != nil {
				at = last.Next
			}
			resp, err := d.sendRequest(ctx, http.MethodGet, at, version, nil) //nolint:bodyclose // the pipeline has read the body to its end
			if err != nil {
				return p, err
			}
			return p, runtime.UnmarshalAsJSON(resp, &p)
		},
	}); pager.More(); {
		var resp *http.Response
		page, err := pager.NextPage(policy.WithCaptureResponse(withCall(ctx, c), &resp))
		if err != nil {
			return nil, newFault(ctx, c, err)
		}
		if page.Value == nil && !codec.IsNullList(resp) || slices.Contains(page.Value, nil) {
			return nil, unexpectedResponse(list)
		}
		for _, item := range page.Value {
			var header resourceHeader
			if header.decode(*item) != nil || header.ID == nil || !strings.EqualFold(path.Dir(*header.ID), list.armID()) {
				return nil, unexpectedResponse(list)
			}
			text, err := compactText(*item)
			if err != nil {
				return nil, unexpectedResponse(list)
			}
			found = append(found, codec.Document{Version: version, Text: text})
		}
	}
	return found, nil
}

// listDecoded spells IDs like the arguments.
func listDecoded[T any](ctx context.Context, c *Client, kind, subscription, resourceGroup string, convert func(lb.ResourceID, codec.Document) (T, error)) ([]T, error) {
	list := listTarget(kind, subscription, resourceGroup)
	docs, err := c.listDocuments(ctx, list)
	if err != nil {
		return nil, err
	}
	var found []T
	for _, item := range docs {
		var header resourceHeader
		if err := header.decode(item.Text); err != nil || !bool(header.Properties) {
			return nil, unexpectedResponse(list)
		}
		id, err := lb.ParseResourceID(*header.ID, kind)
		if err != nil {
			return nil, unexpectedResponse(list)
		}
		id.SubscriptionID, id.ResourceGroup = subscription, resourceGroup
		value, err := decodeDocument(list, id, item, convert)
		if err != nil {
			return nil, err
		}
		found = append(found, value)
	}
	return found, nil
}
