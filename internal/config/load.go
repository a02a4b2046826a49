// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxSize bounds the file; a real one has a few kilobytes.
const maxSize = 1 << 20

// notYet are the keys that users of the Azure cloud provider know and that have no
// effect here so far.
var notYet = []string{
	"privateLinkServiceResourceGroup", "networkResourceTenantID",
}

// othersBusiness are the keys that cluster builders write for other parts of the cloud
// provider: where it makes machines and routes, and how it keeps its own pace. They ask
// nothing of Weir, and a warning at each start would hide those that do.
var othersBusiness = []string{
	"vmType", "primaryAvailabilitySetName", "primaryScaleSetName", "enableVmssFlexNodes",
	"routeTableName", "routeTableResourceGroup", "useInstanceMetadata",
	"providerVaultName", "providerKeyName", "providerKeyVersion", "cloudConfigType",
}

// othersPace matches the keys of the cloud provider's own back-off, rate limits and caches.
var othersPace = regexp.MustCompile(`(?i)^(cloudProvider(Backoff|RateLimit)[a-z]*|[a-z]+(RateLimit|CacheTTLInSeconds))$`)

// Ignored are the keys of a file that have no effect, sorted.
type Ignored struct {
	// NotYet are keys of the Azure cloud provider that Weir does not support yet.
	NotYet []string
	// Unknown are all others: a misspelling, most likely.
	Unknown []string
}

// Warning is one line that names the keys; empty if there are none.
func (i Ignored) Warning() string {
	var parts []string
	if len(i.NotYet) > 0 {
		parts = append(parts, "not supported yet: "+strings.Join(i.NotYet, ", "))
	}
	if len(i.Unknown) > 0 {
		quoted := make([]string, len(i.Unknown))
		for n, key := range i.Unknown {
			quoted[n] = fmt.Sprintf("%q", key)
		}
		parts = append(parts, "unknown: "+strings.Join(quoted, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "keys of azure.json without effect: " + strings.Join(parts, "; ")
}

// Load reads azure.json, written as JSON or YAML, and returns it normalized. Keys
// match without regard to case. An error is one line that names the file, and the
// key or line at fault; it never holds a value of a secret.
func Load(path string) (Config, Ignored, error) {
	content, err := read(path)
	if err != nil {
		return Config{}, Ignored{}, err
	}
	c, ignored, err := parse(content)
	if err != nil {
		return Config{}, Ignored{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, ignored, nil
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	content, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxSize {
		return nil, fmt.Errorf("%s: larger than %d bytes, which no azure.json is", path, maxSize)
	}
	return content, nil
}

func parse(content []byte) (Config, Ignored, error) {
	var c Config
	keys, err := decode(content)
	if err != nil {
		return Config{}, Ignored{}, err
	}
	rest, err := assign(reflect.ValueOf(&c).Elem(), keys, "")
	if err != nil {
		return Config{}, Ignored{}, err
	}
	if err := c.Normalize(); err != nil {
		return Config{}, Ignored{}, err
	}
	var ignored Ignored
	for _, key := range rest {
		same := func(k string) bool { return strings.EqualFold(k, key) }
		known := slices.IndexFunc(notYet, same)
		switch {
		case slices.ContainsFunc(othersBusiness, same), othersPace.MatchString(key):
		case known < 0:
			ignored.Unknown = append(ignored.Unknown, key)
		case !empty(keys[key]):
			ignored.NotYet = append(ignored.NotYet, notYet[known])
		}
	}
	return c, ignored, nil
}

// empty reports whether a value asks for nothing.
func empty(value json.RawMessage) bool { return string(value) == "null" || string(value) == `""` }

// decode splits the file into its keys.
func decode(content []byte) (map[string]json.RawMessage, error) {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	keys := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, errors.New("the file is empty")
	}
	jsonErr := json.Unmarshal(content, &keys)
	if jsonErr == nil && keys != nil {
		return keys, nil
	}
	// What starts as JSON was meant to be JSON, with the comments that YAML takes.
	asJSON := bytes.HasPrefix(bytes.TrimSpace(content), []byte("{"))
	if asJSON && !onlyCommentsFollow(content) {
		return nil, jsonProblem(content, jsonErr)
	}
	if line := secondDocument(content); line > 0 {
		return nil, fmt.Errorf("line %d: a second YAML document begins: put all keys into one", line)
	}
	converted, err := yaml.YAMLToJSONStrict(content)
	if err != nil && asJSON {
		return nil, jsonProblem(content, jsonErr)
	}
	if err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	if err := json.Unmarshal(converted, &keys); err != nil || keys == nil {
		return nil, errors.New("want a mapping of keys to values, such as {\"subscriptionId\": …}")
	}
	return keys, nil
}

// onlyCommentsFollow reports whether nothing but comments stands behind the first
// JSON value, if there is a whole one.
func onlyCommentsFollow(content []byte) bool {
	var value json.RawMessage
	first := json.NewDecoder(bytes.NewReader(content))
	if first.Decode(&value) != nil {
		return true // YAML says what is wrong, if anything is
	}
	for line := range strings.SplitSeq(string(content[first.InputOffset():]), "\n") {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			return false
		}
	}
	return true
}

// secondDocument returns the line in which a second YAML document begins, or 0. The
// library below reads the first and is silent about the rest.
func secondDocument(content []byte) int {
	begun := false
	for i, line := range strings.Split(string(content), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "---") && begun:
			return i + 1
		case strings.HasPrefix(line, "---"), text == "", strings.HasPrefix(text, "#"), strings.HasPrefix(text, "%"):
		default:
			begun = true
		}
	}
	return 0
}

func jsonProblem(content []byte, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset := min(max(int(syntax.Offset), 0), len(content))
		return fmt.Errorf("line %d: %w", 1+bytes.Count(content[:offset], []byte("\n")), err)
	}
	return err
}
