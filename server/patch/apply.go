package patch

import (
	"bytes"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decodeApplied reads what a manager wants: an object in YAML, of which JSON is
// a part that needs no YAML parser.
func decodeApplied(doc []byte) (map[string]any, error) {
	if start := bytes.TrimLeft(doc, " \t\r\n"); len(start) > 0 && start[0] == '{' {
		if err := checkDepth(start); err != nil {
			return nil, err
		}
		wanted := map[string]any{}
		if err := utiljson.Unmarshal(start, &wanted); err == nil {
			return wanted, nil
		}
	}
	wanted := map[string]any{}
	if err := yaml.Unmarshal(doc, &wanted); err != nil {
		return nil, invalid("error decoding YAML: %v", err)
	}
	if isDeeper(wanted, MaxDepth) {
		return nil, errDepth()
	}
	return wanted, nil
}
