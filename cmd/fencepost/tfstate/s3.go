package tfstate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// s3 is an object whose first line is the fence: an ETag does not cover metadata. Each write is
// conditional on the ETag of what it replaces.
type s3 struct {
	url, region string
	credentials aws.Credentials
}

// maxConflicts is how often a write begins again because another holder wrote meanwhile.
const maxConflicts = 10

// newS3 reads region, credentials and endpoint from the environment, as the AWS CLI does.
func newS3(bucket, key string) (*s3, error) {
	s := &s3{
		region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		credentials: aws.Credentials{
			AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		},
	}
	if s.region == "" || !s.credentials.HasKeys() {
		return nil, errors.New("set AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; " +
			"aws configure export-credentials --format env prints the keys of a profile or role")
	}
	base := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"),
		"https://s3."+s.region+".amazonaws.com")
	// S3 signs each byte but these as its escape.
	path := strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(bucket + "/" + key))
	s.url = strings.TrimRight(base, "/") + "/" + path
	return s, nil
}

func (s *s3) Raise(ctx context.Context, fence uint64) error {
	return s.replace(ctx, fence, func(o *object) []byte { return o.data })
}

func (s *s3) Read(ctx context.Context) ([]byte, error) {
	o, err := s.get(ctx)
	return o.data, err
}

func (s *s3) Write(ctx context.Context, fence uint64, data []byte) error {
	return s.replace(ctx, fence, func(*object) []byte { return data })
}

// object is what the bucket has. It has no ETag if it does not exist.
type object struct {
	etag  string
	fence uint64
	data  []byte
}

func (s *s3) replace(ctx context.Context, fence uint64, change func(*object) []byte) error {
	for range maxConflicts {
		found, err := s.get(ctx)
		if err = errors.Join(err, compare(fence, found.fence)); err != nil {
			return err
		}
		put := http.Header{"If-Match": {found.etag}}
		if found.etag == "" {
			put = http.Header{"If-None-Match": {"*"}}
		}
		content := append(strconv.AppendUint(nil, fence, 10), '\n')
		got, err := s.send(ctx, http.MethodPut, put, append(content, change(&found)...))
		if got.status != http.StatusPreconditionFailed && got.status != http.StatusConflict {
			return err
		}
	}
	return errors.New("other processes write it again and again")
}

func (s *s3) get(ctx context.Context) (o object, err error) {
	got, err := s.send(ctx, http.MethodGet, http.Header{}, nil)
	if got.status == http.StatusNotFound {
		return o, nil
	} else if err != nil {
		return o, err
	}
	o.etag = got.etag
	if bytes.HasPrefix(got.content, []byte("{")) {
		o.data = got.content // a state that Terraform wrote: no fence yet
		return o, nil
	}
	first, data, _ := bytes.Cut(got.content, []byte("\n"))
	o.data = data
	if o.fence, err = strconv.ParseUint(string(first), 10, 64); err != nil {
		err = errors.New("the object begins neither with a fence nor with a state")
	}
	return o, err
}

// answer of the store. Its status is 0 if there is none.
type answer struct {
	status  int
	etag    string
	content []byte
}

// send returns the answer, with an error if it is a refusal.
func (s *s3) send(
	ctx context.Context, method string, header http.Header, body []byte,
) (got answer, err error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url, bytes.NewReader(body))
	if err != nil {
		return got, err
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	request.Header = header
	request.Header.Set("X-Amz-Content-Sha256", hash)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	err = signer.SignHTTP(ctx, s.credentials, request, hash, "s3", s.region, time.Now())
	if err != nil {
		return got, err
	}
	response, err := http.DefaultTransport.RoundTrip(request) // a redirect needs another signature
	if err != nil {
		return got, err
	}
	defer func() { _ = response.Body.Close() }() // it is read
	got.status, got.etag = response.StatusCode, response.Header.Get("ETag")
	got.content, err = readAll(response.Body)
	if err == nil && got.status >= http.StatusMultipleChoices {
		err = fmt.Errorf("S3 answers %s: %.300s", response.Status, got.content)
	}
	return got, err
}
