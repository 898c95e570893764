// Package s3 has the check of fences in stores that speak S3: a conditional put.
package s3

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Stale is the error of a write that the check refused.
type Stale struct {
	Known uint64 // the fence of the object
}

func (s *Stale) Error() string { return fmt.Sprintf("stale fence: the object has %d", s.Known) }

// Put writes a value and the fence, unless the object has a greater fence. Without a value it keeps
// the value of the object. It returns the value that the object has now.
func Put(
	ctx context.Context, db *s3.Client, bucket, key string, fence uint64, value *string,
) (string, error) {
	found, err := get(ctx, db, bucket, key)
	if err != nil {
		return "", err
	}
	if found.fence > fence {
		return "", &Stale{found.fence}
	}
	if value != nil {
		found.value = *value
	}
	err = found.replace(ctx, db, bucket, key, fence)
	if isConflict(err) { // another holder wrote since get
		return Put(ctx, db, bucket, key, fence, value)
	}
	return found.value, err
}

func (o object) replace(
	ctx context.Context, db *s3.Client, bucket, key string, fence uint64,
) error {
	// The fence is in the content: an ETag does not cover metadata.
	put := &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, IfMatch: o.etag,
		Body: strings.NewReader(fmt.Sprintf("%d\n%s", fence, o.value)),
	}
	if o.etag == nil {
		put.IfNoneMatch = aws.String("*")
	}
	_, err := db.PutObject(ctx, put)
	return err
}
