package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// StaticTokens are the users of a token file. They are read-only.
type StaticTokens struct {
	entries []tokenEntry
}

// tokenEntry holds a token's digest, not the token.
type tokenEntry struct {
	digest [sha256.Size]byte
	user   User
	line   int
}

// ReadTokenFile reads the file of --token-auth-file.
func ReadTokenFile(path string) (*StaticTokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read token file: %w", err)
	}
	defer f.Close()
	tokens, err := ParseTokens(f)
	if err != nil {
		return nil, fmt.Errorf("token file %s: %w", path, err)
	}
	return tokens, nil
}

// ParseTokens reads CSV: token, user, uid and, optionally, groups, several of
// them in quotes: t0ken,alice,1001,"devs,ops". Errors name the line, never the
// token.
func ParseTokens(r io.Reader) (*StaticTokens, error) {
	records := csv.NewReader(r)
	records.FieldsPerRecord = -1
	records.TrimLeadingSpace = true
	var out StaticTokens
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return &out, nil
		}
		if err != nil {
			return nil, err // names line and column
		}
		line, _ := records.FieldPos(0)
		if err := out.add(record, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (s *StaticTokens) add(record []string, line int) error {
	if len(record) < 3 || len(record) > 4 {
		return fmt.Errorf(`want 3 or 4 columns (token,user,uid,"group1,group2"), found %d`, len(record))
	}
	if record[0] == "" || record[1] == "" {
		return errors.New("the token or the user is empty")
	}
	digest := sha256.Sum256([]byte(record[0]))
	for _, e := range s.entries {
		if e.digest == digest {
			return fmt.Errorf("has the same token as line %d", e.line)
		}
	}
	entry := tokenEntry{digest: digest, line: line, user: User{Name: record[1], UID: record[2]}}
	if len(record) == 4 {
		entry.user.Groups = splitGroups(record[3])
	}
	s.entries = append(s.entries, entry)
	return nil
}

func splitGroups(list string) []string {
	var groups []string
	for _, g := range strings.Split(list, ",") {
		if g = strings.TrimSpace(g); g != "" {
			groups = append(groups, g)
		}
	}
	return groups
}

// Len is the number of tokens.
func (s *StaticTokens) Len() int { return len(s.entries) }

// CheckToken compares with every token, in a time that tells nothing of them.
func (s *StaticTokens) CheckToken(token string) (User, bool, error) {
	digest := sha256.Sum256([]byte(token))
	found := -1
	for i := range s.entries {
		if subtle.ConstantTimeCompare(digest[:], s.entries[i].digest[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return User{}, false, nil
	}
	return s.entries[found].user, true, nil
}
