use std::time::Duration;

use fencepost::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let held = client.lock("orders:42").ttl(Duration::from_secs(5)).await?;
    println!("held, fence {}", held.fence());
    let work = async {
        // UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
        tokio::time::sleep(Duration::from_secs(7)).await;
    };
    held.run(work).await?;
    held.release().await?;
    println!("released");
    Ok(())
}
